#!/usr/bin/perl
# A tiny HTTP server that is to be called politely: the `site` that examples/collect crawls, or the `supplier` whom the jobs of
# examples/rotation call in turns.
#
#     perl examples/impatient.pl site|supplier ADDRESS GAP_MS LOG
#
# Who asks sooner than GAP_MS after the call before gets 429 and `Retry-After`. Every call is a line of LOG: milliseconds,
# status, path. It prints its address first. One connection at a time, and nothing but what every Debian has (perl-base).
use strict;
use warnings;
use IO::Socket::INET;
use POSIX ();

# The site has pages from /0 to /23; each links to two others, so that all are found from the first.
use constant PAGES => 24;

die "usage: impatient.pl site|supplier ADDRESS GAP_MS LOG\n" if @ARGV != 4 || $ARGV[0] !~ /^(site|supplier)$/;
my ($what, $address, $gap, $file) = @ARGV;

my $listener = IO::Socket::INET->new(LocalAddr => $address, Listen => 128, ReuseAddr => 1)
    or die "impatient.pl: cannot listen on $address: $@\n";
open(my $log, '>>', $file) or die "impatient.pl: $file: $!\n";
$_->autoflush(1) for $log, \*STDOUT;
printf "http://%s:%d\n", $listener->sockhost, $listener->sockport;

# Milliseconds since the machine started: the wall clock may be set meanwhile.
sub milliseconds {
    open(my $uptime, '<', '/proc/uptime') or die "impatient.pl: /proc/uptime: $!\n";
    return POSIX::floor((split ' ', <$uptime>)[0] * 1000 + 0.5);
}

sub page {
    my ($number) = @_;
    my @links = grep { $_ < PAGES } $number * 2 + 1, $number * 2 + 2;
    return "<title>Page $number</title>\n" . join '', map { "<a href=\"/$_\">page $_</a>\n" } @links;
}

my $last;
$SIG{PIPE} = 'IGNORE';
while (my $connection = $listener->accept) {
    my $first = <$connection> // next;
    while (defined(my $header = <$connection>)) { last if $header =~ /^\r?\n$/ }
    my $path = (split ' ', $first)[1] // '';
    my $now = milliseconds();
    my $soon = defined $last && $now - $last < $gap;
    $last = $now;
    my ($status, $body) = ('200 OK', "{\"stock\":7}\n");
    if ($soon) {
        ($status, $body) = ('429 Too Many Requests', "too soon\n");
    } elsif ($what eq 'supplier') {
        # Answers take their time.
        select(undef, undef, undef, 0.04);
    } elsif ($path =~ m{^/(\d{1,4})$} && $1 < PAGES) {
        $body = page($1);
    } else {
        ($status, $body) = ('404 Not Found', "no such page\n");
    }
    printf $log "%d %s %s\n", $now, substr($status, 0, 3), $path;
    my $retry = $soon ? "Retry-After: 1\r\n" : '';
    printf $connection "HTTP/1.1 %s\r\n%sContent-Length: %d\r\nConnection: close\r\n\r\n%s",
        $status, $retry, length $body, $body;
    close $connection;
}

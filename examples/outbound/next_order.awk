# Finds the first order that has not been shipped: in the file `orders`, then in each file of the command line, which holds
# one new order. Runs after csv.awk; see ship.sh.
#
# Prints the number of orders of the file that are shipped, how many it has, how many new ones are left, and the id of the
# first that is left (or nothing); then where it goes; then its file, if it is a new one; then its record.
# -v sweep=1 prints the files of new orders that are shipped already instead, one a line.

function note(file) {
    found = 1
    found_id = id
    found_file = file
    found_record = record
}

BEGIN {
    while (read_record(shipped)) {
        rest = record
        done[take_field()] = 1
    }
    read_record(orders) # the header
    while (!sweep && read_record(orders)) {
        rest = record
        id = take_field()
        total++
        if (id in done)
            count++
        else if (!found)
            note("")
    }
    for (i = 1; i < ARGC; i++) {
        if (!read_record(ARGV[i]))
            continue
        close(ARGV[i])
        rest = record
        id = take_field()
        if (id in done) {
            if (sweep)
                print ARGV[i]
            continue
        }
        fresh++
        if (!found)
            note(ARGV[i])
    }
    if (sweep)
        exit
    rest = found_record
    for (i = 1; i <= 6; i++)
        field[i] = take_field()
    place = field[5] ", " field[6]
    gsub(/\n/, " ", place)
    printf "%d %d %d %s\n%s\n%s\n%s\n", count, total, fresh, found_id, place, found_file, found_record
}

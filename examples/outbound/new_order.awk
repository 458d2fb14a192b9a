# Prints a new order: one of the file `orders`, whichever `seed` says, with the number `id` and the date of today in UTC.
# Runs after csv.awk; see order.sh.
BEGIN {
    read_record(orders) # the header
    while (read_record(orders))
        all[++count] = record
    if (!count)
        exit 1
    srand(seed % 2147483647)
    rest = all[1 + int(rand() * count)]
    take_field() # its number
    take_field() # its date
    date = id
    sub(/-.*/, "", date)
    printf "%s,20%s-%s-%s,%s\n", id, substr(date, 1, 2), substr(date, 3, 2), substr(date, 5, 2), rest
}

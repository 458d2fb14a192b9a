# Finds the first order that has not been shipped (see ship.sh). Understands quoted fields, doubled quotes, line breaks
# inside quotes, CRLF and a byte order mark; the first field is the order's number.

# Reads one whole record of `file` into the global `record`: while a quote is open, the record goes on in the next line.
function read_record(file,    line, quotes) {
    record = ""
    while ((getline line < file) > 0) {
        sub(/\r$/, "", line)
        record = record (record == "" ? "" : "\n") line
        quotes = record
        if (gsub(/"/, "", quotes) % 2 == 0 && record != "")
            return 1
    }
    return 0
}

# Takes the first field off the global `rest`.
function take_field(    field) {
    if (match(rest, /^"([^"]|"")*"/)) {
        field = substr(rest, 2, RLENGTH - 2)
        gsub(/""/, "\"", field)
        rest = substr(rest, RLENGTH + 2)
    } else {
        match(rest, /^[^,]*/)
        field = substr(rest, 1, RLENGTH)
        rest = substr(rest, RLENGTH + 2)
    }
    return field
}

BEGIN {
    while (read_record(shipped)) {
        rest = record
        done[take_field()] = 1
    }
    read_record(orders) # the header
    while (read_record(orders)) {
        rest = record
        id = take_field()
        total++
        if (id in done) {
            count++
        } else if (!found) {
            found = 1
            found_id = id
            found_record = record
        }
    }
    rest = found_record
    for (i = 1; i <= 6; i++)
        field[i] = take_field()
    place = field[5] ", " field[6]
    gsub(/\n/, " ", place)
    printf "%d %d %s\n%s\n%s\n", count + found, total, found_id, place, found_record
}

# Reads CSV (see ship.sh). Understands quoted fields, doubled quotes, line breaks inside quotes, CRLF and a byte order mark;
# the first field is the order's number.

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

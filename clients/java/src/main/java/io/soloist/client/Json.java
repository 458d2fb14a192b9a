package io.soloist.client;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads and writes JSON: maps, lists, strings, {@code Long} or {@code Double}, booleans, null. Knows nothing of Soloist. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** @throws IllegalArgumentException when the text is no JSON */
    static Object read(String text) {
        Json json = new Json(text);
        Object value = json.value();
        if (json.peek() != 0) throw json.odd();
        return value;
    }

    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof Map<?, ?> map) {
            String gap = "{";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                write(entry.getKey(), out.append(gap));
                write(entry.getValue(), out.append(':'));
                gap = ",";
            }
            out.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof List<?> list) {
            String gap = "[";
            for (Object each : list) {
                write(each, out.append(gap));
                gap = ",";
            }
            out.append(list.isEmpty() ? "[]" : "]");
        } else if (value instanceof CharSequence string) {
            out.append('"');
            string.chars().forEach(c -> {
                if (c == '"' || c == '\\') out.append('\\').append((char) c);
                else if (c < ' ' || Character.isSurrogate((char) c)) out.append(String.format("\\u%04x", c));
                else out.append((char) c);
            });
            out.append('"');
        } else {
            out.append(value);
        }
    }

    private IllegalArgumentException odd() {
        return new IllegalArgumentException("no JSON at " + at);
    }

    private char peek() {
        while (at < text.length() && text.charAt(at) <= ' ') at++;
        return at < text.length() ? text.charAt(at) : 0;
    }

    private boolean skip(char c) {
        boolean found = peek() == c;
        at += found ? 1 : 0;
        return found;
    }

    private void must(char c) {
        if (!skip(c)) throw odd();
    }

    private Object value() {
        if (peek() == '"') return string();
        if (skip('{')) {
            Map<String, Object> map = new LinkedHashMap<>();
            for (boolean more = !skip('}'); more; more = !skip('}')) {
                if (!map.isEmpty()) must(',');
                peek();
                String key = string();
                must(':');
                map.put(key, value());
            }
            return map;
        }
        if (skip('[')) {
            List<Object> list = new ArrayList<>();
            for (boolean more = !skip(']'); more; more = !skip(']')) {
                if (!list.isEmpty()) must(',');
                list.add(value());
            }
            return list;
        }
        int from = at;
        while (at < text.length() && "+-.eE".indexOf(text.charAt(at)) + 1 + (Character.isLetterOrDigit(text.charAt(at)) ? 1 : 0) > 0) at++;
        String word = text.substring(from, at);
        return switch (word) {
            case "null" -> null;
            case "true", "false" -> word.equals("true");
            case "" -> throw odd();
            default -> word.matches("-?\\d{1,18}") ? (Object) Long.valueOf(word) : Double.valueOf(word);
        };
    }

    private String string() {
        must('"');
        StringBuilder out = new StringBuilder();
        for (; at < text.length(); at++) {
            char c = text.charAt(at);
            if (c == '"') {
                at++;
                return out.toString();
            }
            if (c == '\\' && ++at < text.length()) {
                c = text.charAt(at);
                if (c == 'u') {
                    c = (char) Integer.parseInt(text, at + 1, at + 5, 16);
                    at += 4;
                } else if ("bfnrt".indexOf(c) >= 0) {
                    c = "\b\f\n\r\t".charAt("bfnrt".indexOf(c));
                }
            }
            out.append(c);
        }
        throw odd();
    }
}

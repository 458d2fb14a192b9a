package io.soloist.client;

import static java.util.stream.Collectors.joining;

import java.util.*;
import java.util.regex.*;

/**
 * Reads and writes JSON: maps, lists, strings, {@code Long} or {@code Double}, booleans, null. What else is written is
 * written as its text.
 *
 * <p>It reads what a node wrote, and takes commas and colons for white space.
 */
final class Json {
    private static final Pattern TOKEN = Pattern.compile("\"(?:[^\"\\\\]|\\\\.)*+\"|[{}\\[\\]]|[^\\s,:{}\\[\\]\"]++");
    private static final Pattern ESCAPED = Pattern.compile("\\\\(?:u(\\p{XDigit}{4})|.)");
    private static final Pattern UNSAFE = Pattern.compile("[\"\\\\\\x00-\\x1f\\x{d800}-\\x{dfff}]");

    /** An object. Throws some {@code RuntimeException} when the text is none. */
    @SuppressWarnings("unchecked") static Map<String, Object> read(String text) {
        // What is open, the innermost first; the last one is never closed, and gets the whole.
        var open = new ArrayDeque<List<Object>>(List.of(new ArrayList<>()));
        for (String token : (Iterable<String>) TOKEN.matcher(text).results().map(MatchResult::group)::iterator) {
            Object value = switch (token.charAt(0)) {
                case '{', '[' -> new ArrayList<>();
                case '}' -> map(open.pop().toArray());
                case ']' -> open.pop();
                case '"' -> ESCAPED.matcher(token.substring(1, token.length() - 1)).replaceAll(Json::unescaped);
                case 't', 'f' -> token.equals("true");
                case 'n' -> null;
                default -> token.matches("-?\\d{1,18}") ? (Object) Long.valueOf(token) : Double.valueOf(token);
            };
            if ("{[".contains(token)) open.push((List<Object>) value);
            else open.element().add(value);
        }
        return (Map<String, Object>) Objects.requireNonNull(open.getLast().get(0));
    }

    /** The same, and nothing when the text is none. */
    static Map<String, Object> object(String text) {
        try { return read(text); }
        catch (RuntimeException noJson) { return Map.of(); }
    }

    /** Of names and values in turn. */
    static Map<String, Object> map(Object... pairs) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int nth = 0; nth < pairs.length; nth += 2) map.put((String) pairs[nth], pairs[nth + 1]);
        return map;
    }

    static String write(Object value) {
        if (value instanceof Map<?, ?> map) return map.entrySet().stream().map(Json::write).collect(joining(",", "{", "}"));
        if (value instanceof Map.Entry<?, ?> entry) return write(entry.getKey()) + ':' + write(entry.getValue());
        if (value instanceof List<?> list) return list.stream().map(Json::write).collect(joining(",", "[", "]"));
        if (value == null || value instanceof Number || value instanceof Boolean) return String.valueOf(value);
        return '"' + UNSAFE.matcher(value.toString()).replaceAll(one -> escaped(one.group().charAt(0))) + '"';
    }

    /** Half a surrogate pair becomes U+FFFD: no encoder takes it. */
    private static String escaped(char unsafe) { return "\\\\u%04x".formatted(Character.isSurrogate(unsafe) ? 0xfffd : (int) unsafe); }

    /** At most so long, and never cut inside a pair of surrogates. */
    static String cut(String text, int most) {
        if (text.length() <= most) return text;
        return text.substring(0, Character.isHighSurrogate(text.charAt(most - 1)) ? most - 1 : most);
    }

    private static String unescaped(MatchResult found) {
        String code = found.group(1), plain = found.group().replace("\\/", "/");
        return Matcher.quoteReplacement(code == null ? plain.translateEscapes() : Character.toString(Integer.parseInt(code, 16)));
    }
}

package io.soloist.client;

import static java.util.stream.Collectors.joining;

import java.util.*;
import java.util.regex.*;

/**
 * Reads and writes JSON: maps, lists, strings, {@code Long} or {@code Double}, booleans, null.
 *
 * <p>It reads what a node wrote, and takes commas and colons for white space.
 */
final class Json {
    private static final Pattern TOKEN = Pattern.compile("\"(?:[^\"\\\\]|\\\\.)*+\"|[{}\\[\\]]|[^\\s,:{}\\[\\]\"]++");
    private static final Pattern ESCAPED = Pattern.compile("\\\\(?:u(\\p{XDigit}{4})|.)");
    private static final Pattern UNSAFE = Pattern.compile("[\"\\\\\\x00-\\x1f]");
    private static final Object END = new Object();

    /** An object. Throws some {@code RuntimeException} when the text is none. */
    @SuppressWarnings("unchecked")
    static Map<String, Object> read(String text) {
        Object value = value(TOKEN.matcher(text).results().map(MatchResult::group).iterator());
        return Objects.requireNonNull((Map<String, Object>) value);
    }

    /** Of names and values in turn. */
    static Map<String, Object> map(Object... pairs) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int nth = 0; nth < pairs.length; nth += 2) map.put((String) pairs[nth], pairs[nth + 1]);
        return map;
    }

    static String write(Object value) {
        if (value instanceof Map<?, ?> map) return '{' + joined(map.entrySet()) + '}';
        if (value instanceof Map.Entry<?, ?> entry) return write(entry.getKey()) + ':' + write(entry.getValue());
        if (value instanceof List<?> list) return '[' + joined(list) + ']';
        if (value instanceof String text) return '"' + UNSAFE.matcher(text).replaceAll(Json::escaped) + '"';
        return String.valueOf(value);
    }

    private static String joined(Collection<?> all) { return all.stream().map(Json::write).collect(joining(",")); }

    private static String escaped(MatchResult one) { return String.format("\\\\u%04x", (int) one.group().charAt(0)); }

    private static Object value(Iterator<String> tokens) {
        String token = tokens.next();
        return switch (token.charAt(0)) {
            case '{' -> map(values(tokens).toArray());
            case '[' -> values(tokens);
            case '}', ']' -> END;
            case '"' -> ESCAPED.matcher(token.substring(1, token.length() - 1)).replaceAll(Json::unescaped);
            case 't', 'f' -> token.equals("true");
            case 'n' -> null;
            default -> token.matches("-?\\d{1,18}") ? (Object) Long.valueOf(token) : Double.valueOf(token);
        };
    }

    /** Until the bracket that ends them. */
    private static List<Object> values(Iterator<String> tokens) {
        List<Object> all = new ArrayList<>();
        for (Object each = value(tokens); each != END; each = value(tokens)) all.add(each);
        return all;
    }

    private static String unescaped(MatchResult found) {
        String code = found.group(1);
        if (code == null) return Matcher.quoteReplacement(found.group().replace("\\/", "/").translateEscapes());
        return Matcher.quoteReplacement(Character.toString(Integer.parseInt(code, 16)));
    }
}

package io.soloist.spring.tests;

import static org.assertj.core.api.Assertions.assertThat;

import io.soloist.client.Hold;
import io.soloist.client.Soloist;
import io.soloist.spring.Collect;
import io.soloist.spring.Turn;
import io.soloist.spring.test.FakeSoloist;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;

/** Tasks of a source, and turns of a rotation. */
class TasksAndTurnsTest {
    static class Crawler {
        final List<String> seen = new CopyOnWriteArrayList<>();

        @Collect(value = "pages", parallel = 2) void fetch(Hold.Task task) {
            seen.add(task.key + "=" + ((Map<?, ?>) task.payload).get("url"));
            if (task.key.equals("gone")) throw new Soloist.Dead("gone");
            if (task.key.equals("slow")) throw new IllegalStateException("try again");
        }
    }

    static class Caller {
        volatile long turns, interrupted;
        volatile boolean rests;

        @Turn(rotation = "calls", type = "billing") void call(Hold.Turn turn) throws InterruptedException {
            turns++;
            turn.check();
            if (turns == 3) throw new IllegalStateException("no line");
            if (turns < 5) return;
            try {
                rests = true;
                Thread.sleep(60_000);
            } finally { interrupted++; }
        }
    }

    @Test void tasks_are_done_and_reported() throws Exception {
        try (FakeSoloist fake = new FakeSoloist(true); var app = Apps.start(fake, List.of(), Crawler.class)) {
            Crawler crawler = app.getBean(Crawler.class);
            fake.put("pages", "a", Map.of("url", "http://a"));
            fake.put("pages", "gone", Map.of("url", "http://gone"));
            fake.put("pages", "slow", Map.of("url", "http://slow"));
            fake.await("all are reported", () -> fake.end("a") != null && fake.end("gone") != null && fake.end("slow") != null);
            assertThat(List.of(fake.end("a"), fake.end("gone"), fake.end("slow"))).containsExactly("done", "dead", "retry");
            assertThat(crawler.seen).contains("a=http://a");
        }
    }

    @Test void turns_follow_each_other_fail_in_words_and_end_with_the_context() throws Exception {
        try (FakeSoloist fake = new FakeSoloist(true)) {
            Caller caller;
            try (var app = Apps.start(fake, List.of(), Caller.class)) {
                caller = app.getBean(Caller.class);
                fake.await("the third has failed", () -> "failed".equals(fake.end("calls")));
                Apps.until("the fifth rests", () -> caller.rests);
                assertThat(fake.end("calls")).isEqualTo("done");
            }
            assertThat(caller.interrupted).isEqualTo(1);
            assertThat(fake.isHeld("calls")).isFalse();
        }
    }

    @Test void who_waits_for_a_turn_does_not_hold_up_the_end() {
        try (FakeSoloist fake = new FakeSoloist(false)) {
            var app = Apps.start(fake, List.of(), Caller.class);
            fake.await("it asks", () -> fake.asked("/turns") > 0);
            long began = System.nanoTime();
            app.close();
            assertThat((System.nanoTime() - began) / 1_000_000).isLessThan(15_000);
            assertThat(app.isActive()).isFalse();
        }
    }
}

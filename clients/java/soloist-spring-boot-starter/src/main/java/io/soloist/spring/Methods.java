package io.soloist.spring;

import io.soloist.client.Hold;
import java.lang.annotation.Annotation;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.*;
import java.util.function.Function;
import org.springframework.aop.framework.autoproxy.AutoProxyUtils;
import org.springframework.aop.scope.ScopedProxyUtils;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.core.MethodIntrospector;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.annotation.AnnotationUtils;
import org.springframework.scheduling.annotation.Scheduled;

/**
 * Finds the annotated methods of all beans, and refuses in words what could not work. Runs nothing.
 *
 * <p>A method is called through the bean's proxy, so that its transactions and other advice apply.
 */
final class Methods {
    /** A method to be run. */
    record Found(Work.Kind kind, String name, int parallel, Object bean, Method method) {}

    private static final List<Class<? extends Annotation>> OURS = List.of(RunWhileLeader.class, SoloistScheduled.class, Collect.class, Turn.class);

    private final ConfigurableListableBeanFactory beans;
    private final List<String> problems = new ArrayList<>();
    private final Map<String, String> places = new HashMap<>();
    private final List<Found> found = new ArrayList<>();

    private Methods(ConfigurableListableBeanFactory beans) {
        this.beans = beans;
    }

    /** @throws SoloistStartException with every problem that there is */
    static List<Found> of(ConfigurableListableBeanFactory beans) {
        Methods methods = new Methods(beans);
        for (String bean : beans.getBeanNamesForType(Object.class))
            if (!ScopedProxyUtils.isScopedTarget(bean)) methods.look(bean);
        if (!methods.problems.isEmpty())
            throw new SoloistStartException(String.join("\n", methods.problems), "Correct the methods that are named above, then start again.");
        return methods.found;
    }

    private void look(String bean) {
        Class<?> type = AutoProxyUtils.determineTargetClass(beans, bean);
        if (type == null || !AnnotationUtils.isCandidateClass(type, OURS)) return;
        var methods = MethodIntrospector.selectMethods(type, (Method method) ->
                OURS.stream().anyMatch(ours -> AnnotatedElementUtils.hasAnnotation(method, ours)) ? true : null);
        for (Method method : methods.keySet()) {
            each(bean, method, RunWhileLeader.class, Work.Kind.LEASE, Hold.Lease.class, false, its -> List.of(its.value()), its -> 1);
            each(bean, method, SoloistScheduled.class, Work.Kind.TICK, Hold.Tick.class, false, its -> List.of(its.value()), its -> 1);
            each(bean, method, Collect.class, Work.Kind.TASK, Hold.Task.class, true, its -> List.of(its.value()), Collect::parallel);
            each(bean, method, Turn.class, Work.Kind.TURN, Hold.Turn.class, false, its -> List.of(its.rotation(), its.type()), its -> 1);
        }
    }

    private <A extends Annotation> void each(String bean, Method method, Class<A> ours, Work.Kind kind, Class<?> given, boolean needed,
            Function<A, List<String>> names, Function<A, Integer> parallel) {
        A its = AnnotatedElementUtils.findMergedAnnotation(method, ours);
        if (its == null) return;
        String where = method.getDeclaringClass().getSimpleName() + "." + method.getName() + " (bean " + bean + "): @" + ours.getSimpleName();
        int before = problems.size();
        var types = List.of(method.getParameterTypes());
        if (!(types.equals(List.of(given)) || types.isEmpty() && !needed) || method.getReturnType() != void.class)
            problems.add(where + " needs a method that takes a Hold." + given.getSimpleName() + (needed ? "" : " or nothing") + " and returns void, as in: void "
                    + method.getName() + "(Hold." + given.getSimpleName() + " " + given.getSimpleName().toLowerCase() + ").");
        if (AnnotatedElementUtils.hasAnnotation(method, org.springframework.scheduling.annotation.Async.class)
                || AnnotatedElementUtils.hasAnnotation(method.getDeclaringClass(), org.springframework.scheduling.annotation.Async.class))
            problems.add(where + " and @Async exclude each other: the lease would be released while the work still runs. Remove @Async; the method has a thread of its own.");
        if (kind == Work.Kind.TICK && !AnnotatedElementUtils.findMergedRepeatableAnnotations(method, Scheduled.class).isEmpty())
            problems.add(where + " and @Scheduled exclude each other: each would run the method. Remove @Scheduled; the job on the nodes has the schedule.");
        if (!beans.isSingleton(bean)) problems.add(where + " needs a singleton: change the scope of the bean.");
        List<String> resolved = new ArrayList<>();
        for (String name : names.apply(its)) resolved.add(Objects.requireNonNullElse(beans.resolveEmbeddedValue(name), "").strip());
        if (resolved.contains("")) problems.add(where + " has an empty name: give one, as in @" + ours.getSimpleName()
                + (kind == Work.Kind.TURN ? "(rotation = \"calls\", type = \"billing\")." : "(\"outbound\")."));
        if (parallel.apply(its) < 1) problems.add(where + " has parallel = " + parallel.apply(its) + ": use 1 or more.");
        // Both are the lease of that name.
        String name = String.join("/", resolved), other = places.putIfAbsent((kind.isLease() ? Work.Kind.LEASE : kind) + " " + name, where);
        if (other != null && !resolved.contains(""))
            problems.add(where + " has the name \"" + name + "\", which another method has, too: " + other + ". Give each a name of its own.");
        if (problems.size() == before) invocable(bean, method, where).ifPresent(through -> {
            found.add(new Found(kind, name, parallel.apply(its), beans.getBean(bean), through));
            beans.registerDependentBean(bean, SoloistAutoConfiguration.RUNNER); // so the work ends before its bean is destroyed
        });
    }

    /** The method as it is called through the bean's proxy. */
    private Optional<Method> invocable(String bean, Method method, String where) {
        Object itself = beans.getBean(bean);
        boolean isPrivate = Modifier.isPrivate(method.getModifiers()), isStatic = Modifier.isStatic(method.getModifiers());
        if (isPrivate || isStatic || AopUtils.isCglibProxy(itself) && Modifier.isFinal(method.getModifiers())) {
            problems.add(where + " needs a method that can be called through the bean's proxy: it must not be "
                    + (isPrivate ? "private" : isStatic ? "static" : "final") + ".");
            return Optional.empty();
        }
        try {
            Method through = AopUtils.selectInvocableMethod(method, itself.getClass());
            through.setAccessible(true);
            return Optional.of(through);
        } catch (RuntimeException error) {
            problems.add(where + " cannot be called through the bean's proxy: declare the method in an interface of the bean, or set spring.aop.proxy-target-class=true. ("
                    + error.getMessage() + ")");
            return Optional.empty();
        }
    }
}

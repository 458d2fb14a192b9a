/**
 * Run this while I am the one: the client of Soloist. Nothing beyond the JDK.
 *
 * <table>
 *   <tr><th>class</th><th>what it does</th></tr>
 *   <tr><td>{@link io.soloist.client.Soloist}</td><td>leases, turns and tasks for programs</td></tr>
 *   <tr><td>{@link io.soloist.client.Hold}</td><td>may this program still work? The deadline, the interrupt, the watchdog</td></tr>
 *   <tr><td>{@link io.soloist.client.Loop}</td><td>the same again and again, in threads of its own</td></tr>
 *   <tr><td>{@code Line}</td><td>the clocks; HTTP to one of several nodes, with time-outs and fail-over</td></tr>
 *   <tr><td>{@code Json}</td><td>reads and writes JSON</td></tr>
 * </table>
 *
 * It stores nothing and decides nothing: the node says who may work.
 */
package io.soloist.client;

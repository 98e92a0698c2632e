import type { Host } from '../../values/host.ts'
import type { RuntimeEvent } from '../../events/event.ts'
import { hooksOfEvent, type HookMoment, type HookName, type RunHooks } from '../agent/hooks.ts'

/** How long a run waits for a hook, in milliseconds, where the hook does not say. */
const WAIT_MS = 10_000

/** What hooks are called with. */
export interface HookCaller {
  readonly hooks: readonly RunHooks[]
  readonly host: Pick<Host, 'clock' | 'report'>
  readonly context: unknown
}

/**
 * Calls the hooks of events that are on record, in order. Resolves when those that the run waits for have ended, failed or
 * taken too long; never rejects.
 */
export async function callHooks(
  events: readonly RuntimeEvent[],
  agentBefore: string,
  caller: HookCaller,
): Promise<void> {
  if (caller.hooks.length === 0) return
  let agent = agentBefore
  for (const event of events) {
    if (event.type === 'run_started') agent = event.agent
    const names = hooksOfEvent(event)
    if (names.length > 0)
      await callEach(names, { runId: event.runId, agent, event, context: caller.context }, caller)
    if (event.type === 'agent_handed_off') agent = event.to
  }
}

async function callEach(names: readonly HookName[], moment: HookMoment, caller: HookCaller): Promise<void> {
  for (const name of names) {
    const awaited = caller.hooks.flatMap((hooks) => {
      const called = call(hooks, name, moment, caller)
      return called && hooks.awaited ? [within(called, hooks.timeoutMs ?? WAIT_MS, name, caller)] : []
    })
    if (awaited.length > 0) await Promise.all(awaited)
  }
}

/** Calls one hook; its failure is reported and goes no further. */
function call(
  hooks: RunHooks,
  name: HookName,
  moment: HookMoment,
  { host }: HookCaller,
): Promise<void> | undefined {
  const failed = (error: unknown): void =>
    host.report(error, `The hook ${name} of run ${moment.runId} failed`)
  const hook = hooks[name] as ((moment: HookMoment) => void | Promise<void>) | undefined
  if (hook === undefined) return undefined
  try {
    return Promise.resolve(hook(moment)).catch(failed)
  } catch (error) {
    failed(error)
    return undefined
  }
}

function within(
  called: Promise<void>,
  timeoutMs: number,
  name: HookName,
  { host }: HookCaller,
): Promise<void> {
  return new Promise((resolve) => {
    const stop = host.clock.schedule(timeoutMs, () => {
      host.report(
        new Error(`It took longer than ${timeoutMs} ms.`),
        `The run continues without its hook ${name}`,
      )
      resolve()
    })
    void called.then(() => {
      stop()
      resolve()
    })
  })
}

import type { Tool } from '../../tools/tool.ts'
import type { RetryPolicy } from '../../events/limits.ts'
import type { JsonObject } from '../../values/json.ts'
import type { CallVerdict } from '../../events/signals.ts'
import type { MortalLedger } from './faults.ts'
import { testTool, type TestReport, type TestToolOptions } from '../doubles/test-tool.ts'

/** What really happened, as the tools saw it. */
export interface World {
  /** Effects of write tools, by call. */
  readonly effects: Map<string, number>
  /** Idempotency keys whose effect took place. */
  readonly keys: Set<string>
  /** Effects and model calls that began before what announces them was durable, and reads before it was on record. */
  readonly early: string[]
}

/** Waits that fall beside the others of a program: its timeouts, its grace time, its deadlines. */
const retry: RetryPolicy = { maxAttempts: 3, baseMs: 70, capMs: 100, maxRetryAfterMs: 0 }

type Body = NonNullable<TestToolOptions['run']>

/** Tools whose failed calls are tried again: where they read, where a throw has changed nothing, where a call may be repeated. */
function retriedTools(body: (name: string, writes: boolean) => Body): readonly Tool[] {
  const shared = { timeoutMs: 1_000, retry }
  const write = { ...shared, effect: 'write' } as const
  return [
    testTool({ ...shared, name: 'retried', run: body('retried', false) }),
    testTool({ ...write, name: 'retried_write', run: body('retried_write', true) }),
    testTool({
      ...write,
      name: 'retried_rerunnable',
      recovery: 'rerun',
      run: body('retried_rerunnable', true),
    }),
  ]
}

/** Tools that misbehave as their input says, and that remember what they did to the world. */
export function toolsOf(
  world: World,
  { durable, acknowledged }: Pick<MortalLedger, 'durable' | 'acknowledged'>,
): readonly Tool[] {
  const body = (name: string, writes: boolean, { isApproved = false } = {}): Body => {
    // All reads of a program may run again. What is no first start of one, or was approved, has to be durable.
    const mayStartLazily = !writes && !isApproved
    return async (
      run: { input: JsonObject; idempotencyKey: string; toolCallId: string; attempt: number },
      report: TestReport,
    ): Promise<string> => {
      const isHarmless = mayStartLazily && run.attempt === 1
      const isAnnounced = (isHarmless ? acknowledged : durable).some(
        (event) =>
          event.type === 'tool_started' &&
          event.toolCallId === run.toolCallId &&
          event.attempt === run.attempt,
      )
      if (!isAnnounced) world.early.push(`${name} ${run.toolCallId}`)
      const doing = run.input['do']
      if (doing === 'hang') await new Promise(() => {})
      if (doing === 'progress') report.progress('half')
      await Promise.resolve()
      if (doing === 'defer') report.defer('job', 500)
      if (doing === 'throw') throw new Error('broken')
      // The first attempt of a flaky call fails, before it has an effect.
      if (doing === 'flake' && run.attempt === 1) throw new Error('busy')
      if (writes) {
        world.effects.set(run.toolCallId, (world.effects.get(run.toolCallId) ?? 0) + 1)
        world.keys.add(run.idempotencyKey)
      }
      return `${name} did it`
    }
  }
  const check = (input: JsonObject): CallVerdict =>
    input['do'] === 'invalid'
      ? ({ kind: 'refuse', outcome: 'invalid_input', text: 'do: expected something else' } as const)
      : ({ kind: 'run' } as const)
  const asks = (input: JsonObject): CallVerdict =>
    input['do'] === 'invalid' ? check(input) : { kind: 'ask' }
  const shared = { timeoutMs: 1_000, check }
  return [
    testTool({ ...shared, name: 'read', run: body('read', false) }),
    testTool({ ...shared, name: 'write', effect: 'write', run: body('write', true) }),
    testTool({
      ...shared,
      name: 'rerunnable',
      effect: 'write',
      recovery: 'rerun',
      run: body('rerunnable', true),
    }),
    ...retriedTools(body),
    testTool({
      ...shared,
      name: 'reconciled',
      effect: 'write',
      recovery: 'reconcile',
      run: body('reconciled', true),
      reconcile: async ({ idempotencyKey }) =>
        world.keys.has(idempotencyKey)
          ? { state: 'done', outcome: 'success', content: [{ type: 'text', text: 'it was done' }] }
          : { state: 'not_done' },
    }),
    testTool({
      ...shared,
      name: 'asking',
      effect: 'write',
      run: body('asking', true),
      check: asks,
    }),
    testTool({
      ...shared,
      name: 'asking_read',
      run: body('asking_read', false, { isApproved: true }),
      check: asks,
    }),
  ]
}

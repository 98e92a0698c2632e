import * as fc from 'fast-check'
import { Observable, type Subscriber } from 'rxjs'
import type { Tool } from '@tallystick/core'
import { recoveries } from '@tallystick/core/internal'
import type { Outcome, ToolSignal } from '@tallystick/core/vocabulary'
import { drawFresh } from './random-trouble.ts'

const outcomes = {
  ...{ success: 0, failed: 0, timed_out: 0, cancelled: 0, invalid_input: 0, interrupted: 0 },
  // A tool may not report these.
  ...{ denied: 0, unknown_tool: 0, repeated: 0, limit_reached: 0, skipped: 0 },
} as const satisfies { readonly [O in Outcome]: 0 }

/** What an attempt of a call of a random tool does. */
type Doing =
  | Outcome
  | 'progress'
  | 'late'
  | 'hang'
  | 'twice'
  | 'nothing'
  | 'unsound'
  | 'defer'
  | 'throw'
  | 'throw_proxy'
  | 'throw_at_once'

const doings: readonly Doing[] = [
  ...(Object.keys(outcomes) as Outcome[]),
  ...(['progress', 'late', 'hang', 'twice', 'nothing', 'unsound', 'defer'] as const),
  ...(['throw', 'throw_proxy', 'throw_at_once'] as const),
]

/**
 * Tools of any kind, which do anything: each outcome, late, never, twice, with progress, thrown in strange ways. The first, the
 * second … attempt of their calls each does something else.
 */
export function randomTool(name: string): fc.Arbitrary<Tool> {
  return fc
    .record({
      effect: fc.constantFrom('read', 'write'),
      recovery: fc.constantFrom(...recoveries.filter((recovery) => recovery !== 'reconcile')),
      timeoutMs: fc.integer({ min: 1, max: 2_000 }),
      isRetried: fc.boolean(),
      asks: fc.boolean(),
      isDeaf: fc.boolean(),
      attempts: fc.array(fc.constantFrom(...doings), { minLength: 1, maxLength: 4 }),
    })
    .map((plan) => {
      const { effect, recovery, attempts } = plan
      return drawFresh(`${effect} ${name} (${recovery}): ${attempts.join(', ')}`, () =>
        createTool(name, plan),
      )
    })
}

interface Plan extends Pick<Tool, 'effect' | 'recovery' | 'timeoutMs'> {
  readonly isRetried: boolean
  readonly asks: boolean
  /** True if it does not stop when it is asked to. */
  readonly isDeaf: boolean
  readonly attempts: readonly Doing[]
}

function createTool(name: string, { isRetried, asks, isDeaf, attempts, ...options }: Plan): Tool {
  let begun = 0
  return {
    ...{ name, description: `The random tool ${name}.`, inputSchema: { type: 'object' }, ...options },
    ...(isRetried && { retry: { maxAttempts: 3, baseMs: 70, capMs: 100, maxRetryAfterMs: 0 } }),
    check: () => (asks ? { kind: 'ask' } : { kind: 'run' }),
    run: ({ cancelled$ }) => {
      const doing = attempts[begun++ % attempts.length] ?? 'success'
      if (doing === 'throw_at_once') throw new Error('broken')
      return new Observable((subscriber) => {
        const stop = cancelled$.subscribe((reason) => {
          if (!isDeaf) end(subscriber, 'cancelled', reason)
        })
        void act(subscriber, doing)
        return stop
      })
    },
  }
}

function end(subscriber: Subscriber<ToolSignal>, outcome: Outcome, text: string): void {
  subscriber.next({ type: 'tool_ended', outcome, content: [{ type: 'text', text }] })
  subscriber.complete()
}

async function act(subscriber: Subscriber<ToolSignal>, doing: Doing): Promise<void> {
  await Promise.resolve()
  if (doing in outcomes) return end(subscriber, doing as Outcome, `It is ${doing}.`)
  switch (doing as Exclude<Doing, Outcome | 'throw_at_once'>) {
    case 'progress':
      subscriber.next({ type: 'tool_progressed', data: { done: 0.5 } })
      return end(subscriber, 'success', 'Done.')
    case 'late':
      for (let turn = 0; turn < 1_000; turn++) await Promise.resolve()
      return end(subscriber, 'success', 'Late.')
    case 'hang':
      return
    case 'twice':
      subscriber.next({ type: 'tool_ended', outcome: 'success', content: [{ type: 'text', text: 'One.' }] })
      return end(subscriber, 'failed', 'Two.')
    case 'nothing':
      return subscriber.complete()
    case 'unsound':
      subscriber.next({ type: 'tool_ended', outcome: 'success', content: [() => 'no JSON'] } as never)
      return subscriber.complete()
    case 'defer':
      subscriber.next({ type: 'tool_deferred', externalId: 'job', deadlineMs: 500 })
      return subscriber.complete()
    case 'throw':
      return subscriber.error(new Error('broken'))
    case 'throw_proxy': {
      const { proxy, revoke } = Proxy.revocable({}, {})
      revoke()
      return subscriber.error(proxy)
    }
  }
}

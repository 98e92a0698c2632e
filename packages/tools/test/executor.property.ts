import type { ToolSignal } from '@tallystick/core/vocabulary'
import { defineTool, ToolError } from '@tallystick/tools'
import * as fc from 'fast-check'
import { Subject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { toolRun } from './one-call.ts'

/** What a tool does, step by step, and how it ends, if it does. */
interface Behaviour {
  readonly steps: readonly ('progress' | 'wait' | 'obey')[]
  readonly end: 'return' | 'throw' | 'tool_error' | 'never'
  readonly value: unknown
}

/** What the runtime does at each turn of the event loop. */
type Interference = 'nothing' | 'cancel' | 'break_cancelled' | 'unsubscribe'

const behaviour: fc.Arbitrary<Behaviour> = fc.record({
  steps: fc.array(fc.constantFrom('progress', 'wait', 'obey'), { maxLength: 6 }),
  end: fc.constantFrom('return', 'throw', 'tool_error', 'never'),
  value: fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withNullPrototype: true,
  }),
})

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

async function play({ steps, end, value }: Behaviour, interferences: readonly Interference[]) {
  const cancelled$ = new Subject<string>()
  const signals: ToolSignal[] = []
  let [completed, unsubscribed, lateProgress] = [0, false, (): void => {}]
  const tool = defineTool({
    name: 'acts',
    description: 'Acts.',
    input: { type: 'object' },
    effect: 'write',
    async execute(_input, { signal, progress }) {
      lateProgress = () => progress('late')
      for (const step of steps) {
        if (step === 'progress') progress(value as never)
        else if (step === 'wait') await turn()
        else signal.throwIfAborted()
      }
      if (end === 'never') return new Promise(() => {})
      if (end === 'return') return value
      throw end === 'throw' ? value : new ToolError('own words')
    },
  })
  const subscription = tool.run(toolRun({}, { cancelled$ })).subscribe({
    next: (signal) => void signals.push(signal),
    complete: () => void completed++,
  })
  for (const interference of interferences) {
    if (interference === 'cancel') cancelled$.next('stop')
    else if (interference === 'break_cancelled') cancelled$.error(new Error('broken'))
    else if (interference === 'unsubscribe') {
      unsubscribed = true
      subscription.unsubscribe()
    }
    await turn()
  }
  for (let rest = 0; rest < 8; rest++) await turn()
  const received = signals.length
  lateProgress()
  const late = signals.length - received
  const closed = subscription.closed
  subscription.unsubscribe()
  return { signals, completed, unsubscribed, closed, late, listening: cancelled$.observed }
}

describe('one start of any tool, whatever the runtime does meanwhile', () => {
  it('has one ending, last, which JSON can carry; or none, where no caller waits or it never settles', async () => {
    const interference = fc.constantFrom<Interference>(
      'nothing',
      'nothing',
      'cancel',
      'break_cancelled',
      'unsubscribe',
    )
    const holds = fc.asyncProperty(
      behaviour,
      fc.array(interference, { maxLength: 4 }),
      async (acts, meanwhile) => {
        const { signals, completed, unsubscribed, closed, late, listening } = await play(acts, meanwhile)
        const endings = signals.filter(({ type }) => type === 'tool_ended')
        const settles = acts.end !== 'never' || endings.length === 1
        expect(endings.length).toBe(completed)
        expect(endings.length).toBeLessThanOrEqual(1)
        expect(endings.length === 1 || unsubscribed || !settles).toBe(true)
        expect(endings[0]).toBe(endings.length === 1 ? signals.at(-1) : undefined)
        // What the tool threw is for the host alone.
        const recordable = signals.map((signal) => ({ ...signal, thrown: undefined }))
        expect(JSON.parse(JSON.stringify(recordable))).toEqual(recordable)
        expect(closed).toBe(unsubscribed || completed === 1)
        expect([late, listening]).toEqual([closed ? 0 : 1, false])
      },
    )
    const minusZero: [Behaviour, Interference[]] = [{ steps: ['progress'], end: 'return', value: -0 }, []]
    await fc.assert(holds, { numRuns: tries(400), examples: [minusZero] })
  })
})

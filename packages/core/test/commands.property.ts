import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CommandAcknowledgement, Run, RunResult, RuntimeEvent } from '@tallystick/core'
import { testTool, type ScriptedStep } from '@tallystick/testkit'
import { tries } from '../../../scripts/testing/effort.ts'
import { checkedRun, ofType, stage } from './stage.ts'

/** What a caller asks of a run, when the event of a number is seen, or while the run is suspended. */
interface Asked {
  readonly atSeq: number
  readonly what: 'approve' | 'deny' | 'steer' | 'queue' | 'cancel' | 'raise' | 'resume' | 'nonsense'
}

const asked: fc.Arbitrary<Asked> = fc.record({
  atSeq: fc.integer({ min: 1, max: 60 }),
  what: fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom<Asked['what']>('approve', 'deny', 'steer', 'queue', 'raise') },
    { weight: 3, arbitrary: fc.constantFrom<Asked['what']>('resume', 'nonsense') },
    { weight: 1, arbitrary: fc.constant<Asked['what']>('cancel') },
  ),
})

const steps: fc.Arbitrary<readonly ScriptedStep[]> = fc.array(
  fc.record({
    text: fc.constantFrom('', 'Hm.'),
    toolCalls: fc.array(fc.constantFrom({ name: 'look', input: {} }, { name: 'pay', input: {} }), {
      maxLength: 3,
    }),
  }),
  { maxLength: 4 },
)

interface Played {
  readonly events: readonly RuntimeEvent[]
  readonly result: RunResult
  /** What became of everything that was asked. */
  readonly acknowledgements: readonly {
    readonly what: Asked['what']
    readonly acknowledgement: CommandAcknowledgement
  }[]
}

async function play(script: readonly ScriptedStep[], asks: readonly Asked[]): Promise<Played> {
  const set = stage({
    steps: [...script, ...Array.from({ length: 40 }, () => ({ text: 'Done.' }))],
    tools: [
      testTool({ name: 'look' }),
      testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) }),
    ],
    limits: { maxTurns: 2, maxRepeats: 99, onLimit: 'ask' },
  })
  const run = set.start()
  const sent: Promise<Played['acknowledgements'][number]>[] = []
  const ask = ({ what }: Asked, toolCallId = 'call_1'): void => {
    const acknowledgement = send(run, what, toolCallId)
    if (acknowledgement) sent.push(acknowledgement.then((answer) => ({ what, acknowledgement: answer })))
    else set.runtime.resume(run.id)
  }
  let lastCall: string | undefined
  run.events$.subscribe((event) => {
    lastCall = event.toolCallId ?? lastCall
    for (const each of asks) if (each.atSeq === event.seq) ask(each, lastCall)
  })
  for (let rests = 0; rests < 60; rests++) {
    const result = await set.waitUntilSettled(run.result)
    if (result.status === 'done') {
      const acknowledgements = await set.waitUntilSettled(Promise.all(sent))
      return { result, acknowledgements, events: checkedRun(await set.eventsOf(run)) }
    }
    for (const { toolCallId } of result.pendingApprovals) ask({ atSeq: 0, what: 'approve' }, toolCallId)
    if (result.pendingApprovals.length === 0) ask({ atSeq: 0, what: 'raise' })
  }
  throw new Error('The run does not end, however often it is helped on.')
}

function send(
  run: Run,
  what: Asked['what'],
  toolCallId: string,
): Promise<CommandAcknowledgement> | undefined {
  switch (what) {
    case 'approve':
      return run.approve(toolCallId, { by: 'ada' })
    case 'deny':
      return run.deny(toolCallId, { by: 'ada', reason: 'no' })
    case 'steer':
      return run.steer('Hurry.')
    case 'queue':
      return run.queue('And?')
    case 'cancel':
      return run.cancel()
    case 'raise':
      return run.raiseLimit('maxTurns', 50, { by: 'ada' })
    case 'nonsense':
      return run.approve(toolCallId, { by: 7 as never })
    case 'resume':
      return undefined
  }
}

describe('commands that come at any time', () => {
  it('are each answered, keep every law, and what was accepted is on record, once', async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.array(asked, { maxLength: 8 }), async (script, asks) => {
        const { events, acknowledgements } = await play(script, asks)
        const accepted = (...kinds: readonly Asked['what'][]): number =>
          acknowledgements.filter(
            ({ what, acknowledgement }) => kinds.includes(what) && acknowledgement.accepted,
          ).length
        const inputs = ofType(events, 'input_received').filter(({ delivery }) => delivery !== 'start')
        expect(inputs).toHaveLength(accepted('steer', 'queue'))
        expect(ofType(events, 'approval_decided')).toHaveLength(accepted('approve', 'deny'))
        expect(ofType(events, 'cancel_requested')).toHaveLength(accepted('cancel'))
        expect(ofType(events, 'limit_raised')).toHaveLength(accepted('raise'))
        expect(accepted('nonsense')).toBe(0)
        // Every input is settled once, and none is lost.
        const settled = ofType(events, 'input_settled').map(({ receipt }) => receipt)
        expect(settled.toSorted()).toEqual(inputs.map(({ receipt }) => receipt!).toSorted())
        // One driver in this process: no take-over found anything in flight.
        expect(ofType(events, 'run_resumed').filter(({ inDoubt }) => inDoubt.length > 0)).toEqual([])
      }),
      { numRuns: tries(150) },
    )
  })
})

import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RunState } from '@tallystick/core'
import { advance, auditAll } from '@tallystick/core/machine'
import { given } from '@tallystick/testkit'
import type { Signal } from '@tallystick/core/vocabulary'
import { tries } from '../../../scripts/testing/effort.ts'
import { Mailbox } from '../src/runtime/mailbox.ts'
import { begun, called, runId } from './pages.ts'

const numRuns = tries(200)
const before = given([...begun(), called()]).state as RunState

/** What a model reports while it writes: deltas of few parts, most of them beside others of the same part. */
const report: fc.Arbitrary<Signal> = fc
  .record({
    type: fc.constantFrom('model_text', 'model_text', 'model_reasoning', 'model_tool_input'),
    part: fc.constantFrom(0, 0, 0, 1, 2),
    text: fc.constantFrom('', 'a', 'bc ', 'ü', '語', '😀'),
    name: fc.constantFrom('look', 'see'),
    replaces: fc.constantFrom(undefined, undefined, undefined, true as const),
    turn: fc.constantFrom(1, 1, 1, 1, 1, 1, 2),
    attempt: fc.constantFrom(1, 1, 1, 1, 1, 1, 2),
  })
  .map(({ replaces, name, ...rest }) => ({
    ...rest,
    ...(rest.type === 'model_tool_input' ? { name } : replaces && { replaces }),
  })) as fc.Arbitrary<Signal>

/** What the run knows after reports, of which those of one group wait in the mailbox together. */
function record(groups: readonly (readonly Signal[])[]) {
  let state = before
  const events = groups.flatMap((reports) => {
    const mailbox = new Mailbox()
    for (const message of reports) mailbox.post({ message })
    const messages = mailbox.takeBatch().map(({ message }) => message)
    const options = { writer: { runId, epoch: 1 }, stamp: () => ({ at: before.at, random: 0 }) }
    const made = advance(state, messages, options)
    state = made.state
    return made.events
  })
  return { events, state }
}

describe('neighbouring deltas of a reply', () => {
  it('say the same whether they are recorded together or one by one', () => {
    fc.assert(
      fc.property(fc.array(fc.array(report, { maxLength: 12 }), { maxLength: 6 }), (groups) => {
        const together = record(groups)
        const alone = record(groups.flat().map((each) => [each]))
        expect(together.events.length).toBeLessThanOrEqual(alone.events.length)
        expect(auditAll(together.events, before) ?? before).toStrictEqual(together.state)
        const readReply = ({ state }: typeof alone) =>
          state.phase === 'streaming' && {
            drafts: state.attempt.drafts,
            callParts: state.attempt.callParts,
            streamedTokens: state.attempt.streamedTokens.toFixed(6),
          }
        expect(readReply(together)).toStrictEqual(readReply(alone))
      }),
      { numRuns },
    )
  })
})

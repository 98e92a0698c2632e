import { decide } from '@tallystick/core/machine'
import { sampleFacts, given, sampleCallId, sampleRunId } from '@tallystick/testkit'
import type { Command, Fact } from '@tallystick/core/vocabulary'
import { expect, it } from 'vitest'
import { refuseAtEnd, refuseByDrain, refuseUnknownCall } from '../src/runtime/commands.ts'

const runId = sampleRunId(1)
const facts = sampleFacts(runId)
const toolCallId = sampleCallId(runId)
const { parent: _parent, ...start } = facts.run_started
const message = { role: 'user', parts: [{ type: 'text', text: 'Go.' }] } as const
const begun: readonly Fact[] = [start, facts.input_received]
const cancelled: readonly Fact[] = [...begun, { ...facts.cancel_requested, turn: 0 }]
const ended: readonly Fact[] = [...begun, { ...facts.run_finished, turn: 0 }]

/** The message with which a command is refused. */
function refusalOf(page: readonly Fact[], command: Command): string {
  const { state } = given(page)
  const decision = decide(state, command, { at: state?.at ?? 0, random: 0 })
  return 'refused' in decision ? decision.refused.message : 'not refused'
}

const step =
  /(?:\. |; )(show|Show|Start|Wait|Give|Raise|Resume|Look|To continue, start|What is not set needs no raise|Send the command)\b/

it.each<readonly [string, readonly Fact[], Command]>([
  ['a run that is done', ended, { type: 'cancel' }],
  ['a second cancel', cancelled, { type: 'cancel' }],
  ['input during a cancel', cancelled, { type: 'steer', message, receipt: 'r' }],
  ['a limit that is not set', begun, { type: 'raise_limit', limit: 'maxTokens', max: 5, by: 'ann' }],
  ['a decision about no call', begun, { type: 'approve', toolCallId, by: 'ann' }],
  ['a settlement of no call', begun, { type: 'settle', toolCallId, outcome: 'success', content: [] }],
] as never)('the refusal of %s says what to do next', (_what, page, command) => {
  expect(refusalOf(page, command)).toMatch(step)
})

it('and so do the refusals of a handle', () => {
  for (const { message: said } of [refuseAtEnd(runId), refuseByDrain(runId), refuseUnknownCall(runId)])
    expect(said).toMatch(/\. To continue, start|\. Send|; show the run/)
})

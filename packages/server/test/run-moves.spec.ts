import { createRuntime, defineAgent, memoryLedger, type RuntimeEvent } from '@tallystick/core'
import { scriptedModel, testTool, type ScriptedStep } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { RunMoves } from '../src/stream/run-moves.ts'

/** The events of a run whose model plays these steps. */
async function eventsOf(steps: readonly ScriptedStep[]): Promise<readonly RuntimeEvent[]> {
  const tools = [testTool({ name: 'look' })]
  const agent = defineAgent({ name: 'clerk', instructions: 'Answer.', model: scriptedModel(steps), tools })
  const ledger = memoryLedger()
  const { runId } = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Well?').result
  return await Array.fromAsync(ledger.read(runId))
}

/** The types of the moves that these events give, each in a row once. */
function typesOf(moves: RunMoves, events: readonly RuntimeEvent[]): readonly string[] {
  const types = events.flatMap((event) => moves.next(event).map(({ type }) => type))
  return types.filter((type, index) => type !== types[index - 1])
}

const look = { text: 'I look.', toolCalls: [{ name: 'look', input: {} }] }
const failing = { fail: 'overloaded', retryAfterMs: 1 } as const

describe('the moves of a run', () => {
  it('take back what an attempt has shown, and nothing where it has shown nothing', async () => {
    const first = ['run_started', 'input_taken', 'step_started', 'part_started', 'part_added', 'part_ended']
    const call = [
      'call_started',
      'call_input_added',
      'call_requested',
      'call_ended',
      'step_ended',
      'step_started',
    ]
    const answer = ['part_started', 'part_added', 'part_ended', 'step_ended', 'run_finished']
    const silent = await eventsOf([look, failing, { text: 'Found.' }])
    expect(typesOf(new RunMoves(), silent)).toEqual([...first, ...call, ...answer])
    const shown = await eventsOf([look, { text: 'Half', ...failing }, { text: 'Found.' }])
    const withdrawn = ['part_started', 'part_added', 'part_ended', 'step_withdrawn']
    expect(typesOf(new RunMoves(), shown)).toEqual([...first, ...call, ...withdrawn, ...answer])
  })

  it('begin a step again in a stream that continues, where the step has shown nothing yet', async () => {
    const events = await eventsOf([look, { text: 'Found.' }])
    const reopened = (type: RuntimeEvent['type'], turn: number): readonly string[] => {
      const moves = new RunMoves()
      typesOf(
        moves,
        events.slice(0, events.findIndex((event) => event.type === type && event.turn === turn) + 1),
      )
      return moves.reopen().map((move) => move.type)
    }
    expect(reopened('run_started', 0)).toEqual(['run_reopened'])
    expect(reopened('model_call_started', 1)).toEqual(['run_reopened', 'step_started'])
    expect(reopened('assistant_text_delta', 1)).toEqual(['run_reopened'])
    expect(reopened('tool_result', 1)).toEqual(['run_reopened'])
    expect(reopened('model_call_started', 2)).toEqual(['run_reopened', 'step_started'])
    expect(reopened('assistant_text_delta', 2)).toEqual(['run_reopened'])
    expect(reopened('run_finished', 2)).toEqual(['run_reopened'])
    expect(new RunMoves().reopen()).toEqual([])
  })
})

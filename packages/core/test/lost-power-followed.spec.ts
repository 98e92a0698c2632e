import { expect, it } from 'vitest'
import {
  createRuntime,
  defineAgent,
  type Ledger,
  memoryLedger,
  type RunState,
  type RuntimeEvent,
} from '@tallystick/core'
import { audit, evolve, serializeState } from '@tallystick/core/machine'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { foldFollowed, loadState } from '../src/runtime/run-result.ts'

/** A run of an agent that calls a tool so often at once, up to its end. */
async function record(calls: number, ledger: Ledger = memoryLedger()): Promise<readonly RuntimeEvent[]> {
  const agent = agentThatCalls(calls)
  const run = createRuntime({ ledger, agents: [agent] }).run(agent, 'Which colour?')
  await run.result
  return await Array.fromAsync(ledger.read(run.id))
}

function agentThatCalls(calls: number) {
  const toolCalls = Array.from({ length: calls }, (_, at) => ({ name: 'look', input: { at } }))
  return defineAgent({
    name: 'painter',
    instructions: 'Look.',
    tools: [testTool({ name: 'look', run: () => 'Blue.' })],
    model: scriptedModel([{ toolCalls }, { text: 'Blue.' }]),
  })
}

const fold = (events: readonly RuntimeEvent[]): RunState =>
  events.reduce<RunState | undefined>(evolve, undefined)!

it('a run is read anew after a take-over, since its store may have lost power and events that were followed', async () => {
  const followed = await record(1)
  const { runId } = followed[0]!
  const started = followed.findIndex(({ type }) => type === 'tool_started') + 1
  const known = fold(followed.slice(0, started))

  // Four events are left in the store; another process took the run over there, and wrote others after them.
  const ledger = memoryLedger()
  await ledger.append(runId, { epoch: 1, expectedSeq: 0 }, followed.slice(0, 4), { durability: 'barrier' })
  await createRuntime({ ledger, agents: [agentThatCalls(6)] }).resume(runId).result
  const [next] = await Array.fromAsync(ledger.read(runId, { fromSeq: known.seq + 1 }))

  expect(() => audit(known, next!)).toThrow('not legal in the phase executing')
  const state = await foldFollowed(ledger, known, next!)
  expect(serializeState(state)).toEqual(serializeState((await loadState(ledger, runId))!))
  // What is part of it already changes nothing.
  expect(await foldFollowed(ledger, state, next!)).toBe(state)
})

// Runs of which only digests stay: their content is gone once they have ended, and what needs no content still holds.
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import {
  agentTool,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Agent,
  type Ledger,
} from '@tallystick/core'
import type { RecordingPolicy } from '@tallystick/core/vocabulary'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { exportEvents, foldTo, verifyRun } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { temporaryFolder } from './support/temporary-folder.ts'

const marker = 'marker-71c2'

function open(): Ledger {
  const ledger = sqliteLedger(join(temporaryFolder(), 'runs.db'))
  onTestFinished(() => ledger.close())
  return ledger
}

async function recordOf(ledger: Ledger, runId: string): Promise<string> {
  const lines: string[] = []
  for await (const line of exportEvents(ledger, runId as never)) lines.push(line)
  return lines.join('\n')
}

interface Policies {
  readonly desk?: RecordingPolicy
  readonly helper?: RecordingPolicy
  readonly clerk?: RecordingPolicy
}

/** A desk that asks a helper in a run of its own, whose tool asks a person, and then hands over to a clerk. */
function desk({ desk: own, helper, clerk }: Policies = {}): Agent {
  const pay = testTool({
    name: 'pay',
    effect: 'write',
    check: () => ({ kind: 'ask' }),
    run: () => `paid ${marker}`,
  })
  const worker = defineAgent({
    ...{
      name: 'helper',
      description: 'Helps.',
      instructions: `Help, ${marker}.`,
      tools: [pay],
      recording: helper,
    },
    model: scriptedModel(
      [{ toolCalls: [{ name: 'pay', input: { to: marker } }] }, { text: `Helped ${marker}.` }],
      'helper',
    ),
  })
  const next = defineAgent({
    ...{ name: 'clerk', description: 'Ends.', instructions: 'End.', recording: clerk },
    model: scriptedModel([{ text: `All done, ${marker}.` }], 'clerk'),
  })
  return defineAgent({
    ...{ name: 'desk', instructions: 'Ask.', tools: [agentTool(worker)], handoffs: [next], recording: own },
    model: scriptedModel(
      [
        { reasoning: marker, toolCalls: [{ name: 'helper', input: { task: `Pay ${marker}.` } }] },
        { toolCalls: [{ name: 'transfer_to_clerk', input: {} }] },
      ],
      'desk',
    ),
  })
}

interface Given {
  readonly run?: RecordingPolicy
  readonly runtime?: RecordingPolicy
}

async function played(ledger: Ledger, agent: Agent, given: Given) {
  const runtime = createRuntime({ ledger, agents: [agent], recording: given.runtime })
  const run = runtime.run(agent, `Begin with ${marker}.`, { recording: given.run })
  const waiting = await run.result
  const [approval] = waiting.pendingApprovals
  // A run that is under way keeps its content: another process can take it up.
  const during = await recordOf(ledger, run.id)
  await run.approve(approval!, { by: 'ada' })
  const result = await run.result
  await runtime.idle()
  const child = approval!.toolCallId.slice('call_'.length, 'call_'.length + 32)
  const childId = [
    child.slice(0, 8),
    child.slice(8, 12),
    child.slice(12, 16),
    child.slice(16, 20),
    child.slice(20),
  ].join('-')
  return {
    result,
    during,
    own: await recordOf(ledger, run.id),
    ofChild: await recordOf(ledger, childId),
    runId: run.id,
    childId,
  }
}

it.each([
  ['the run', {}, { run: { content: 'digests' } }, [true, true]],
  ['its runtime', {}, { runtime: { content: 'digests' } }, [true, true]],
  ['its agent', { desk: { content: 'digests' } }, {}, [true, true]],
  ['the agent that takes over', { clerk: { content: 'digests' } }, {}, [true, true]],
  ['an agent that works for it', { helper: { content: 'digests' } }, {}, [false, true]],
  ['no policy', {}, {}, [false, false]],
  ['a run over its agent', { desk: { content: 'digests' } }, { run: { content: 'full' } }, [false, false]],
] as const)(
  'given digests by %s, then contents stay while it is under way, and go where they are to',
  async (_who, policies, given: Given, removed) => {
    const [own] = removed
    const ledger = open()
    const found = await played(ledger, desk(policies), given)
    expect(found.result).toMatchObject({ status: 'done', reason: 'answered', text: `All done, ${marker}.` })
    expect(found.during).toContain(marker)
    expect([!found.own.includes(marker), !found.ofChild.includes(marker)]).toEqual(removed)
    for (const runId of [found.runId, found.childId as typeof found.runId]) {
      const verdict = await verifyRun(ledger, runId)
      expect(verdict).toMatchObject({ ok: true })
      expect(await foldTo(ledger, runId)).toMatchObject({ phase: 'done', reason: 'answered' })
    }
    if (!own) return
    expect(found.own).toContain("content: 'digests'")
    // Asked again, the run is as it was, and loses nothing more.
    const again = await createRuntime({ ledger, agents: [desk(policies)], recording: given.runtime }).resume(
      found.runId,
    ).result
    expect(again).toMatchObject({ reason: 'answered', turns: found.result.turns, usage: found.result.usage })
  },
)

it('given a session whose earlier run kept digests alone, then the next run begins without what is gone', async () => {
  const ledger = open()
  const model = scriptedModel([{ text: `One ${marker}.` }, { text: 'Two.' }])
  const agent = defineAgent({ name: 'desk', instructions: 'Help.', model, recording: { content: 'digests' } })
  const runtime = createRuntime({ ledger })
  await runtime.run(agent, `First, ${marker}.`, { sessionId: 's' }).result
  expect(await runtime.run(agent, 'Second.', { sessionId: 's' }).result).toMatchObject({ text: 'Two.' })
  expect(JSON.stringify(model.requests[1])).not.toContain(marker)
})

it('given a ledger that cannot remove content, then a run of which digests alone are to stay is refused before it begins', async () => {
  const ledger = memoryLedger()
  const runtime = createRuntime({ ledger })
  const agent = desk({ clerk: { content: 'digests' } })
  expect(() => runtime.run(agent, 'Go.')).toThrow(/content: 'digests', and its ledger cannot remove content/)
  expect(() => runtime.run(desk(), 'Go.', { recording: { content: 'none' as never } })).toThrow(
    /content is 'none'/,
  )
  for await (const run of ledger.runs()) throw new Error(`${run.runId} was begun`)
})

it('given a process that ends before the content is removed, then the next resume of the run removes it', async () => {
  const ledger = open()
  const agent = defineAgent({
    ...{ name: 'desk', instructions: 'Help.', recording: { content: 'digests' } },
    model: scriptedModel([{ text: `One ${marker}.` }]),
  })
  const failing: Ledger = {
    ...ledger,
    removeContent: () => Promise.reject(new Error('the process ends here')),
  }
  const run = createRuntime({ ledger: failing }).run(agent, 'Go.')
  await expect(run.result).rejects.toThrow('the process ends here')
  expect(await recordOf(ledger, run.id)).toContain(marker)
  expect(await createRuntime({ ledger, agents: [agent] }).resume(run.id).result).toMatchObject({
    text: `One ${marker}.`,
  })
  expect(await recordOf(ledger, run.id)).not.toContain(marker)
})

import { createRuntime, defineAgent, memoryLedger, type Run } from '@tallystick/core'
import { sampleFacts, sampleRunId, scriptedModel, stampFacts, testTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { driveRun, type ApprovalChoice } from '../src/drive/interactive-run.ts'
import { readParent, readParents } from '../src/runs/find-run.ts'

/** A run that asks for approval of two payments, then answers. */
function paying(): Run {
  const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
  const toolCalls = [
    { name: 'pay', input: { usd: 1 } },
    { name: 'pay', input: { usd: 2 } },
  ]
  const model = scriptedModel([{ toolCalls }, { text: 'Paid.' }])
  const agent = defineAgent({ name: 'payer', instructions: '', model, tools: [pay] })
  return createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(agent, 'Pay.')
}

const approve: ApprovalChoice = { kind: 'approve', via: 'prompt' }
const by = 'ann'
const watch = (): void => {}

describe('a run that a person drives', () => {
  it('is asked about call by call, and watched from its first event to its last, each once', async () => {
    const run = paying()
    const [asked, seqs]: [unknown[], number[]] = [[], []]
    const result = await driveRun(run, {
      by,
      choose: ({ input }) => {
        asked.push(input)
        return input['usd'] === 1 ? approve : { kind: 'deny', via: 'prompt', reason: 'too dear' }
      },
      watch: ({ seq }) => void seqs.push(seq),
    })
    expect(asked).toEqual([{ usd: 1 }, { usd: 2 }])
    expect(result).toMatchObject({ status: 'done', reason: 'answered', text: 'Paid.' })
    const events = await Array.fromAsync(run)
    expect(seqs).toEqual(events.map(({ seq }) => seq))
    expect(events.filter(({ type }) => type === 'approval_decided')).toMatchObject([
      { approved: true, by, via: 'prompt' },
      { approved: false, by, via: 'prompt', reason: 'too dear' },
    ])
  })

  it('asks about no later call that an approval covers', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const call = { toolCalls: [{ name: 'pay', input: { usd: 1 } }] }
    const model = scriptedModel([call, call, { text: 'Paid.' }])
    const agent = defineAgent({ name: 'payer', instructions: '', model, tools: [pay] })
    const run = createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(agent, 'Pay.')
    const standing = { for: 'session' as const, expiresInMs: 60_000 }
    const asked: unknown[] = []
    const choose = ({ toolCallId }: { toolCallId: string }): ApprovalChoice => {
      asked.push(toolCallId)
      return { ...approve, standing }
    }
    expect(await driveRun(run, { by, choose, watch })).toMatchObject({ text: 'Paid.' })
    expect(asked).toHaveLength(1)
    expect(pay.runs).toHaveLength(2)
  })

  it('stays suspended where everything is left for later', async () => {
    const run = paying()
    const result = await driveRun(run, { by, choose: () => ({ kind: 'later' }), watch })
    expect(result).toMatchObject({
      status: 'suspended',
      pendingApprovals: [{ name: 'pay' }, { name: 'pay' }],
    })
  })

  it('continues where another person has decided some of the calls meanwhile', async () => {
    const run = paying()
    const result = await driveRun(run, {
      by,
      choose: async (approval) => {
        if (approval.input['usd'] === 1) await run.approve(approval, { by: 'bob' })
        return approve
      },
      watch,
    })
    expect(result).toMatchObject({ status: 'done', reason: 'answered' })
  })

  it('is given up where it takes none of the decisions, with the reasons', async () => {
    const run = paying()
    const driven = driveRun(run, {
      by,
      choose: async (approval) => {
        await run.approve(approval, { by: 'bob' })
        return approve
      },
      watch,
    })
    await expect(driven).rejects.toMatchObject({
      name: 'CommandError',
      message: expect.stringMatching(/^The run took no decision\. .*call_\w+_1\b.*call_\w+_2\b/s),
    })
  })
})

describe('the parents of a run', () => {
  const { run_started: started } = sampleFacts(sampleRunId(1))
  const { parent: _parent, sessionId: _session, sessionPlace: _place, ...plain } = started

  /** A ledger of runs, each with the run that it came from. */
  async function related(...runs: readonly (readonly [run: number, from?: number, relation?: string])[]) {
    const ledger = memoryLedger()
    for (const [run, from, relation = 'child'] of runs) {
      const runId = sampleRunId(run)
      const parent = from === undefined ? {} : { parent: { runId: sampleRunId(from), seq: 1, relation } }
      const events = stampFacts(runId, [{ ...plain, ...parent } as typeof started])
      await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
    }
    return ledger
  }

  it('are found up to the one at the top', async () => {
    const ledger = await related([1], [2, 1], [3, 2])
    expect(await readParents(ledger, sampleRunId(3))).toEqual([sampleRunId(2), sampleRunId(1)])
    expect(await readParents(ledger, sampleRunId(1))).toEqual([])
    expect(await readParent(ledger, sampleRunId(1))).toBeUndefined()
    expect(await readParent(ledger, sampleRunId(9))).toBeUndefined()
  })

  it('are no runs that a run was forked from', async () => {
    const ledger = await related([1], [2, 1, 'fork'], [3, 2])
    expect(await readParents(ledger, sampleRunId(3))).toEqual([sampleRunId(2)])
    expect(await readParent(ledger, sampleRunId(2))).toMatchObject({ relation: 'fork' })
  })

  it('are named once where damaged runs are parents of each other', async () => {
    const ledger = await related([1, 2], [2, 1])
    expect(await readParents(ledger, sampleRunId(1))).toEqual([sampleRunId(2), sampleRunId(1)])
  })
})

// What is given in place of a ledger, a run or an agent, where no compiler looks.
import { expect, it } from 'vitest'
import { ConfigurationError, createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { sampleRunId, scriptedModel } from '@tallystick/testkit'
import { diffRuns, explain, exportRegression, replayRun, selectDifferences } from '@tallystick/replay'

const agent = defineAgent({ name: 'clerk', instructions: '', model: scriptedModel([{ text: 'Done.' }]) })
const ledger = memoryLedger()
const { runId } = await createRuntime({ ledger }).run(agent, 'Go.').result
const other = sampleRunId(1)
const path = 'runs.db' as never
const nothing = undefined as never

it.each<readonly [string, () => unknown, string]>([
  [
    'an object to compare runs of',
    () => diffRuns({} as never, runId, other),
    'diffRuns: the ledger is an object',
  ],
  ['no second run', () => diffRuns(ledger, runId, nothing), 'diffRuns: the run id is missing'],
  ['an object to explain a run of', () => explain({} as never, runId, 1), 'explain: the ledger is an object'],
  ['no run to explain', () => explain(ledger, nothing, 1), 'explain: the run id is missing'],
  ['a path to replay a run of', () => replayRun(path, runId, () => agent), 'replayRun: the ledger is a text'],
  ['no run to replay', () => replayRun(ledger, nothing, () => agent), 'replayRun: the run id is missing'],
  [
    'no agent of a name',
    () => replayRun(ledger, runId, () => nothing),
    'replayRun: what was found by the name "clerk" is missing: give an agent made with defineAgent',
  ],
  [
    'an agent that has to be awaited',
    () => replayRun(ledger, runId, (async () => agent) as never),
    'what was found by the name "clerk" is a promise (await it first)',
  ],
  [
    'a path to export a run of',
    () => exportRegression(path, runId, { file: 'x', agents: { from: './agents.ts' } }),
    'the ledger is a text',
  ],
  [
    'a report of nothing',
    () => selectDifferences(nothing),
    'selectDifferences: the list of differences is missing',
  ],
])('refuses %s', async (_name, act, message) => {
  const refusal = (async () => await act())()
  await expect(refusal).rejects.toThrow(ConfigurationError)
  await expect(refusal).rejects.toThrow(message)
})

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigurationError, createRuntime, defineAgent, type RuntimeEvent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { redact } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { exportRegression, replayRun } from '@tallystick/replay'
import { describe, expect, it, onTestFinished } from 'vitest'
import { requireContent } from '../src/replay.ts'
import { temporaryFolder } from './support/temporary-folder.ts'

describe('a run of which content is gone', () => {
  it('is not driven again, and is not written as a regression test', async () => {
    const folder = temporaryFolder()
    const ledger = sqliteLedger(join(folder, 'runs.db'))
    onTestFinished(() => ledger.close())
    const agent = defineAgent({ name: 'a', instructions: '', model: scriptedModel([{ text: 'Yes.' }]) })
    const { runId } = await createRuntime({ ledger }).run(agent, 'Go.').result
    await redact(ledger, runId, [2, 4], { by: 'ada', reason: 'A name was in it.' })
    const refusal = `Run ${runId} cannot be driven again: the content of event 2 is redacted by ada. Choose a run that is whole.`
    await expect(replayRun(ledger, runId, () => agent)).rejects.toThrow(refusal)
    const file = join(folder, 'a.spec.ts')
    const written = exportRegression(ledger, runId, { file, agents: { from: './agent.ts' } })
    await expect(written).rejects.toThrow(refusal)
    await expect(written).rejects.toThrow(ConfigurationError)
    expect([file, join(folder, 'a.jsonl')].map((path) => existsSync(path))).toEqual([false, false])
  })

  it('is refused with what to do: sealed content needs keys', () => {
    const event = { runId: 'r', seq: 3 } as unknown as RuntimeEvent
    const refused =
      (kind: string): unknown =>
      () =>
        requireContent([event, { ...event, removed: { kind } } as RuntimeEvent])
    expect(refused('sealed')).toThrow('the content of event 3 is sealed. Open the ledger with its keys.')
    expect(refused('erased')).toThrow('the content of event 3 is erased. Choose a run that is whole.')
    expect(() => requireContent([event])).not.toThrow()
  })
})

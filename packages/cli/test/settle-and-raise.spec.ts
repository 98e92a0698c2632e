import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRuntime, defineAgent, type RunResult } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/core/testing'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { json, tallystickHere } from './kit/tallystick.ts'

/** A run that waits for a job outside, and then for more turns than it may take. */
const agent = defineAgent({
  name: 'exporter',
  instructions: '',
  model: scriptedModel([{ toolCalls: [{ name: 'export', input: {} }] }, { text: 'Exported.' }]),
  tools: [
    testTool({
      name: 'export',
      run: (_call, report) => {
        report.defer('job-7')
        return ''
      },
    }),
  ],
  limits: { maxTurns: 1, onLimit: 'ask' },
})

/** Drives the run to its next rest, in a runtime of its own. */
async function drive(path: string, runId?: string): Promise<RunResult> {
  const ledger = sqliteLedger(path)
  const runtime = createRuntime({ ledger, agents: [agent] })
  const result = await (runId === undefined ? runtime.run(agent, 'Export.') : runtime.resume(runId)).result
  await ledger.close()
  return result
}

describe('a run that waits for something other than an approval', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tallystick-answering-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  it('is settled and raised from the command line, each once, and continues', async () => {
    const path = join(folder, 'runs.db')
    const { runId, deferredCalls } = await drive(path)
    const call = deferredCalls[0]!.toolCallId
    expect((await tallystickHere('list', path)).stdout).toContain(`suspended on export ${call}`)

    expect(await tallystickHere('settle', path, 'latest', 'job-8', '--result', 'x')).toMatchObject({
      code: 5,
    })
    expect(await tallystickHere('settle', path, 'latest', 'job-7')).toMatchObject({ code: 2 })
    const settled = await tallystickHere('settle', path, 'latest', 'job-7', '--result', '12 rows', '--json')
    expect(settled.code).toBe(0)
    expect(json(settled.stdout)).toMatchObject({
      runId,
      command: { type: 'settle', toolCallId: call },
      added: true,
    })

    expect(await drive(path, runId)).toMatchObject({ status: 'suspended', turns: 1 })
    expect((await tallystickHere('list', path)).stdout).toContain('suspended on the limit maxTurns')
    expect(await tallystickHere('raise', path, runId, 'maxTurns', '1')).toMatchObject({ code: 1 })
    expect(await tallystickHere('raise', path, runId, 'maxWishes', '9')).toMatchObject({ code: 2 })
    expect(await tallystickHere('raise', path, runId, 'maxTurns', '2', '--by', 'ann')).toMatchObject({
      code: 0,
    })
    expect(await drive(path, runId)).toMatchObject({ reason: 'answered', text: 'Exported.', turns: 2 })
    expect(await tallystickHere('raise', path, runId, 'maxTurns', '9')).toMatchObject({
      ...{ code: 1, stderr: expect.stringContaining('is done (answered), so no limit applies') },
    })
    expect(await tallystickHere('verify', path)).toMatchObject({ code: 0 })
  })
})

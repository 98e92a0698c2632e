import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Agent, createRuntime, defineAgent, type RunResult } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { json, tallystickHere } from './kit/tallystick.ts'

/** An agent whose run waits for a job outside, and then for more turns than it may take. */
const exporter = (): Agent =>
  defineAgent({
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
async function drive(agent: Agent, path: string, runId?: string): Promise<RunResult> {
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
    const [agent, path] = [exporter(), join(folder, 'runs.db')]
    const { runId, deferredCalls } = await drive(agent, path)
    const call = deferredCalls[0]!.toolCallId
    expect((await tallystickHere('list', path)).stdout).toContain(`suspended on export ${call}`)

    expect(await tallystickHere('settle', path, 'latest', 'job-8', '--result', 'x')).toMatchObject({
      code: 5,
    })
    expect(await tallystickHere('settle', path, 'latest', 'job-7')).toMatchObject({ code: 2 })
    const both = ['--result', 'x', '--failed', 'y']
    expect(await tallystickHere('settle', path, 'latest', 'job-7', ...both)).toMatchObject({ code: 2 })
    const settled = await tallystickHere('settle', path, 'latest', 'job-7', '--result', '12 rows', '--json')
    expect(settled.code).toBe(0)
    expect(json(settled.stdout)).toMatchObject({
      runId,
      command: { type: 'settle', toolCallId: call },
      added: true,
    })

    expect(await drive(agent, path, runId)).toMatchObject({ status: 'suspended', turns: 1 })
    expect((await tallystickHere('list', path)).stdout).toContain('suspended on the limit maxTurns')
    expect(await tallystickHere('raise', path, runId, 'maxTurns', '1')).toMatchObject({ code: 1 })
    expect(await tallystickHere('raise', path, runId, 'maxToolCalls', '9')).toMatchObject({
      ...{ code: 1, stderr: expect.stringContaining('has no such limit, so 9 would not raise it') },
    })
    expect(await tallystickHere('raise', path, runId, 'maxWishes', '9')).toMatchObject({ code: 2 })
    expect(await tallystickHere('raise', path, runId, 'maxTurns', '2', '--by', 'ann')).toMatchObject({
      code: 0,
    })
    expect(await drive(agent, path, runId)).toMatchObject({ reason: 'answered', text: 'Exported.', turns: 2 })
    expect(await tallystickHere('raise', path, runId, 'maxTurns', '9')).toMatchObject({
      ...{ code: 1, stderr: expect.stringContaining('is done (answered), so its limits no longer apply') },
    })
    expect(await tallystickHere('verify', path)).toMatchObject({ code: 0 })
  })

  it('is settled with what went wrong, and says where that was asked for before', async () => {
    const path = join(folder, 'failed.db')
    const { runId, deferredCalls } = await drive(exporter(), path)
    const words = ['settle', path, 'latest', 'job-7', '--failed', 'The disk is full.', '--by', 'ops']
    expect(await tallystickHere(...words)).toEqual({
      code: 0,
      stdout: `tallystick resume ${path} ${runId}\n`,
      stderr: [
        `Recorded: settle for run ${runId}.`,
        'The process that drives the run takes the command. If there is none, this continues the run:',
        '',
      ].join('\n'),
    })
    const other = await tallystickHere('settle', path, 'latest', 'job-7', '--result', 'Done.')
    expect(other).toMatchObject({
      ...{ code: 1, stderr: expect.stringContaining('is settled already: settle by ops waits') },
    })
    const again = await tallystickHere(...words, '--json')
    expect(json(again.stdout)).toEqual({
      ...{ runId, added: false, next: `tallystick resume ${path} ${runId}` },
      command: {
        ...{ type: 'settle', toolCallId: deferredCalls[0]!.toolCallId, outcome: 'failed' },
        content: [{ type: 'text', text: 'The disk is full.' }],
        by: 'ops',
      },
    })
    expect((await tallystickHere(...words)).stderr).toContain(
      `This was asked for before: settle for run ${runId}.`,
    )
  })

  it('is cancelled, with a reason or without one', async () => {
    for (const [name, reason] of [
      ['why.db', ['--reason', 'too late']],
      ['just.db', []],
    ] as const) {
      const path = join(folder, name)
      const { runId } = await drive(exporter(), path)
      const { stdout } = await tallystickHere('cancel', path, runId, '--by', 'ann', ...reason, '--json')
      expect(json(stdout)).toMatchObject({ added: true })
      expect((json(stdout) as { command: object }).command).toEqual({
        ...{ type: 'cancel', by: 'ann' },
        ...(reason.length > 0 && { reason: 'too late' }),
      })
    }
  })
})

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime, defineAgent } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { scriptedModel } from '@tallystick/testkit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { json, tallystickHere } from './kit/tallystick.ts'

describe('feedback from the command line', () => {
  let folder: string
  let path: string
  let runIds: readonly string[]
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tallystick-feedback-'))
    path = join(folder, 'runs.db')
    const ledger = sqliteLedger(path)
    const model = scriptedModel(['Two.', 'Three.', 'Four.'].map((text) => ({ text })))
    const agent = defineAgent({ name: 'sums', instructions: 'Add.', model })
    const runtime = createRuntime({ ledger, agents: [agent] })
    const ids: string[] = []
    for (const sessionId of ['a', 'a', 'b'])
      ids.push((await runtime.run(agent, 'Two and two?', { sessionId }).result).runId)
    runIds = ids
    await ledger.close()
  })
  afterAll(() => rm(folder, { recursive: true }))

  it('is recorded, shown behind the end of the run, and followed by tail', async () => {
    const given = ['--score', '0', '--note', 'not the\u001b[2J sum', '--by', 'ann']
    const { code, stderr } = await tallystickHere('feedback', path, runIds[0]!, ...given)
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: `Recorded: feedback of ann on run ${runIds[0]}.\n`,
    })
    for (const verb of ['show', 'tail']) {
      const { stdout } = await tallystickHere(verb, path, runIds[0]!)
      expect(stdout).toContain('ann gave the score 0: not the')
      expect(stdout).not.toContain('\u001b')
    }
    const said = await tallystickHere('feedback', path, runIds[1]!, '--score', '0.5', '--by', 'bob', '--json')
    expect(json(said.stdout)).toEqual({ runId: runIds[1], feedback: { by: 'bob', score: 0.5 } })
  })

  it.each([
    [['score<0.5'], [0]],
    [['score<=0.5'], [1, 0]],
    [['score>0'], [1]],
    [['score=0.5'], [1]],
    [['by=ann'], [0]],
    [['by=ann', 'score>0'], []],
    [['session=a', 'by=bob'], [1]],
    [['started>=1h', 'started<2999-01-01', 'by=ann'], [0]],
    [['started<1h'], []],
    [
      ['agent=sums', 'since=1h', 'status=done'],
      [2, 1, 0],
    ],
  ])('chooses runs: %j', async (conditions, places) => {
    const words = conditions.flatMap((each) => ['--where', each])
    const { stdout } = await tallystickHere('list', path, '--json', ...words)
    const found = stdout.split('\n').filter(Boolean)
    expect(found.map((line) => (JSON.parse(line) as { runId: string }).runId)).toEqual(
      places.map((place) => runIds[place]),
    )
  })

  it.each([
    [['feedback', 'latest']],
    [['feedback', 'latest', '--score', 'high']],
    [['list', '--where', 'score<high']],
    [['list', '--where', 'mood=good']],
    [['list', '--where', 'constructor=1']],
    [['list', '--where', 'agent<sums']],
    [['list', '--where', 'status=gone']],
    [['list', '--where', 'started=3d']],
  ])('is refused where it is none: %j', async ([verb, ...words]) => {
    expect(await tallystickHere(verb!, path, ...words)).toMatchObject({ code: 2 })
  })
})

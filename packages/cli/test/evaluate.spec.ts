import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime, defineAgent } from '@tallystick/core'
import { readRunSummaries } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { scriptedModel } from '@tallystick/testkit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTallystick, tallystickHere } from './kit/tallystick.ts'

const imports = (...names: readonly string[]): string =>
  names
    .map((name) => `import * as ${name} from ${JSON.stringify(import.meta.resolve(`@tallystick/${name}`))}\n`)
    .join('')

/** An evaluation of two agents: one answers the expected, one does not. A few scores cannot be given. */
const evaluation = (cases: string, scorers: string): string => `${imports('core', 'evals', 'testkit')}
const agent = (text) => core.defineAgent({
  name: 'sums', instructions: 'Add.', model: testkit.scriptedModel(Array.from({ length: 99 }, () => ({ text }))),
})
export default () => ({ cases: ${cases}, agents: { today: agent('Four.'), other: agent('Five.') }, scorers: ${scorers} })
`

describe('an evaluation from the command line', () => {
  let folder: string
  const at = (name: string): string => join(folder, name)
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tallystick-evaluate-'))
    const ledger = sqliteLedger(at('runs.db'))
    const model = scriptedModel(['Four.', 'Five.'].map((text) => ({ text })))
    const agent = defineAgent({ name: 'sums', instructions: 'Add.', model })
    const runtime = createRuntime({ ledger, agents: [agent] })
    for (const score of [1, 0]) {
      const run = runtime.run(agent, `Two and two? password=hunter2secret${score}`)
      await run.result
      await run.feedback({ by: 'ada', score })
    }
    await ledger.close()
    const { stdout } = await tallystickHere('dataset', at('runs.db'), '--where', 'score>=1')
    await writeFile(at('cases.jsonl'), stdout)
    const path = JSON.stringify(at('cases.jsonl'))
    await writeFile(at('evaluation.mjs'), evaluation(path, '{ exact: evals.exact() }'))
    const hostile = String.raw`{ 'a\u001b[2Jb': () => NaN, odd: (run) => ({ score: 0.5, note: '\u202e\u001b]0;x\u0007' }) }`
    await writeFile(at('hostile.mjs'), evaluation(path, hostile))
    await writeFile(at('empty.mjs'), evaluation('[]', '{ exact: evals.exact() }'))
    const cut = 'abcdefghi'.split('').map((id) => JSON.stringify({ id, input: 'x', expected: 'Four.' }))
    await writeFile(at('cut.jsonl'), `${cut.join('\n')}\n{"id":"j","inp`)
    const onCut = evaluation(JSON.stringify(at('cut.jsonl')), '{ exact: evals.exact() }, concurrency: 1')
    await writeFile(at('cut.mjs'), onCut)
    await writeFile(at('none.mjs'), 'export default { agents: [] }')
  })
  afterAll(() => rm(folder, { recursive: true }))

  it('has cases of the runs that are chosen, without their secrets', async () => {
    const lines = (await readFile(at('cases.jsonl'), 'utf8')).trim().split('\n')
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { expected: 'Four.', feedback: [{ by: 'ada', score: 1 }], calls: [], reason: 'answered' },
    ])
    expect(lines[0]).not.toContain('hunter2')
    const all = await tallystickHere('dataset', at('runs.db'))
    expect(all.stdout.trim().split('\n')).toHaveLength(2)
    expect(all.stderr).toBe('2 cases.\n')
    const [newest, oldest] = all.stdout.trim().split('\n')
    const { id } = JSON.parse(oldest!) as { readonly id: string }
    const named = await tallystickHere('dataset', at('runs.db'), '--run', id, 'latest')
    expect(named.stdout).toBe(`${oldest}\n${newest}\n`)
  })

  it('prints a table, and fails where a score is under the least one', async () => {
    const args = ['evaluate', at('evals.db'), at('evaluation.mjs'), '--repeats', '2']
    const { code, stdout, stderr } = await tallystickHere(...args)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^ +today +other +other - today$/m)
    expect(stdout).toMatch(/^exact +1\.00 \[0\.21, 1\.00\] +0\.00 \[0\.00, 0\.79\] +-1\.00$/m)
    expect(stdout).toContain('1 case, 2 runs each, 4 runs.')
    const [, runId = ''] = /tallystick show \S+ (\S+)$/m.exec(stderr) ?? []
    const shown = await tallystickHere('show', at('evals.db'), runId)
    expect(shown.stdout).toContain('exact gave the score 0')
    const low = await tallystickHere(...args, '--min', '0.8')
    expect(low.code).toBe(1)
    expect(low.stderr).toContain('exact of other is 0.000, and has to be 0.8 or more.')
    expect(await tallystickHere(...args, '--min', 'exact=0.8', '--agent', 'today')).toMatchObject({ code: 0 })
    const json = await tallystickHere(...args, '--json')
    const lines = json.stdout.trim().split('\n')
    const data = lines.map((line) => JSON.parse(line) as { agent?: string; report?: object })
    expect(data.map(({ agent, report }) => agent ?? (report && 'report'))).toEqual([
      ...['today', 'today', 'other', 'other'],
      'report',
    ])
  })

  it('continues one of the same name, and makes no run twice', async () => {
    const args = ['evaluate', at('named.db'), at('evaluation.mjs'), '--name', 'nightly']
    const first = await tallystickHere(...args)
    const second = await tallystickHere(...args)
    const table = (text: string): string => text.replace(/^time .*$/m, '').replaceAll(/ {2,}/g, '  ')
    expect(table(second.stdout)).toBe(table(first.stdout))
    const ledger = sqliteLedger(at('named.db'))
    const runs = await Array.fromAsync(readRunSummaries(ledger, { tag: 'evaluation:nightly' }))
    await ledger.close()
    expect(runs).toHaveLength(2)
  })

  it('loses nothing at Ctrl-C, and continues with what is missing', async () => {
    const hangs = `{ text: 'F', hang: !fs.existsSync(${JSON.stringify(at('answers'))}) }`
    const module = `import fs from 'node:fs'
${imports('core', 'evals', 'testkit')}
const model = testkit.scriptedModel([{ text: 'Four.' }, ${hangs}, { text: 'Four.' }])
export default {
  cases: ['a', 'b', 'c'].map((id) => ({ id, input: 'Two and two?', expected: 'Four.' })),
  agents: { today: core.defineAgent({ name: 'sums', instructions: 'Add.', model }) },
  scorers: { exact: evals.exact() }, concurrency: 1,
}
`
    await writeFile(at('hangs.mjs'), module)
    const args = ['evaluate', at('stopped.db'), at('hangs.mjs'), '--name', 'x', '--json']
    const work = startTallystick(...args)
    // The first case is done, and the second one never will be.
    await work.prints((stdout) => stdout.includes('"case":"a"'))
    work.kill('SIGINT')
    const { code, stdout, stderr } = await work.ending
    expect({ code, stderr }).toEqual({
      code: 130,
      stderr: expect.stringMatching(
        /Stopped after 1 case\..*\n {2}tallystick evaluate .* --name x\n/,
      ) as string,
    })
    expect(stdout).toContain('"isComplete":false')
    await writeFile(at('answers'), '')
    const rest = await tallystickHere(...args)
    expect(rest).toMatchObject({ code: 0, stdout: expect.stringContaining('"isComplete":true,') as string })
    const ledger = sqliteLedger(at('stopped.db'))
    const runs = await Array.fromAsync(readRunSummaries(ledger))
    await ledger.close()
    expect(runs.map(({ status }) => status)).toEqual(['done', 'done', 'done'])
  })

  it('shows hostile names and notes as text, and fails without scores', async () => {
    const { code, stdout, stderr } = await tallystickHere(
      ...['evaluate', at('hostile.db'), at('hostile.mjs'), '--min', 'odd=0.5'],
    )
    expect(stdout + stderr).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u)
    expect(stdout).toContain('2 runs without a score')
    expect(stdout).toContain('It returned NaN')
    expect(stderr).toContain('2 scores could not be given.')
    expect(code).toBe(1)
  })

  it('says how to go on from a case file that ends in the middle of a line', async () => {
    const { code, stderr } = await tallystickHere('evaluate', at('cut.db'), at('cut.mjs'))
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(
        /this makes those that are missing:\n {2}tallystick evaluate .* --name \S+\n[^]*Line 10 of .* is not JSON: Unterminated/,
      ) as string,
    })
  })

  it.each([
    [['none.mjs'], 2, 'describes no evaluation'],
    [['missing.mjs'], 2, 'cannot be imported'],
    [['evaluation.mjs', '--min', '2'], 2, 'from 0 to 1'],
    [['evaluation.mjs', '--min', 'tone=0.5'], 2, 'There is no scorer tone'],
    [['evaluation.mjs', '--agent', 'nobody'], 2, 'There is no agent nobody'],
    [['evaluation.mjs', '--repeats', '0'], 2, 'repeats'],
    [['empty.mjs'], 1, 'There was no case'],
  ])('says what is wrong: %j', async ([file, ...options], code, said) => {
    const ended = await tallystickHere('evaluate', at('wrong.db'), at(file!), ...options)
    expect({ code: ended.code, stderr: ended.stderr }).toEqual({
      code,
      stderr: expect.stringContaining(said) as string,
    })
  })
})

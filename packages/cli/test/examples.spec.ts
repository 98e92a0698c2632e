import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exampleFolders, type ExampleFolders, type ExampleStanding } from './kit/example-folder.ts'
import { tallystickHere } from './kit/tallystick.ts'

/** The verbs that the help of the whole command names. */
const { stdout: help } = await tallystickHere('--help')
const verbs = [...help.matchAll(/^ {2}([a-z]+) {2,}/gm)].flatMap(([, name = '']) =>
  name === 'help' ? [] : [name],
)

interface Expectation {
  /** Where it is typed: after a run that is done, unless said. */
  readonly at?: ExampleStanding
  /** What has been typed before. */
  readonly before?: string
  /** What is typed after it, to see what it has done. */
  readonly after?: string
  /** It ends at a signal, which it gets once it has printed this. */
  readonly stopsAfter?: RegExp
  /** What all of it shows. */
  readonly shows: RegExp
}

/** What each example comes to. */
const expected: Readonly<Record<string, Expectation>> = {
  dev: {
    stopsAfter: /ticket/,
    shows: /^http:\/\/127\.0\.0\.1:\d+\/[\w-]{16}\/inspector\?ticket=[\w-]{32}$/m,
  },
  run: { shows: /^> How warm is it in Seoul\?$/m },
  resume: { at: 'waiting', shows: /was approved by ann \(--yes\)$/m },
  fork: { shows: /^Payment: 5 USD paid$|tallystick approve runs\.db/m },
  serve: { stopsAfter: /Bearer/, shows: /^http:\/\/127\.0\.0\.1:8080$/m },
  list: { at: 'waiting', shows: /^\S+ +assistant +\d.* suspended on pay call_\w+_2_1_1$/m },
  find: { shows: /^\S+ +\d+ {2}\S+Z {2}pay success \{"usd":5\} 5 USD paid$/m },
  schedules: { shows: /^No schedule is on record\.$/m },
  show: { shows: /^phase +\w+, turn 2, event 12 of \d+/m },
  inspect: {
    at: 'waiting',
    stopsAfter: /ticket/,
    shows: /^http:\/\/127\.0\.0\.1:\d+\/[\w-]{16}\/inspector\?ticket=[\w-]{32}$/m,
  },
  explain: { shows: /^turn +2, agent assistant,/m },
  tail: { shows: /^done: answered/m },
  diff: { shows: /^run +\S+ +\S+5f2c91$/m },
  stats: { shows: /^runs: 2 done$/m },
  approve: { at: 'waiting', shows: /^tallystick resume runs\.db \S+$/m },
  deny: { at: 'waiting', shows: /^tallystick resume runs\.db \S+$/m },
  withdraw: {
    at: 'standing',
    shows: /^Recorded: the standing approval call_\w+_2_1_1 of session tea is withdrawn\.$/m,
  },
  settle: { at: 'deferred', shows: /^tallystick resume runs\.db \S+$/m },
  raise: { at: 'waiting', shows: /^tallystick resume runs\.db \S+$/m },
  cancel: { at: 'waiting', shows: /^tallystick resume runs\.db \S+$/m },
  verify: {
    before: 'tallystick checkpoint runs.db --out checkpoints --key key.pem --origin example.com/agents',
    shows: /^checkpoints {2}ok {2}1 checkpoint, 2 runs/m,
  },
  replay: { shows: /^\S+ {2}\d+ events happened again as recorded$/m },
  regression: { shows: /refund\.spec\.ts\n.*refund\.jsonl$/m },
  feedback: { after: "tallystick list runs.db --where 'score=0'", shows: /^\S+ +assistant +/m },
  dataset: { after: 'cat cases.jsonl', shows: /^\{"id":.*"input":"Buy tea\.".*"expected":/m },
  evaluate: { shows: /^exact +1\.00 \[0\.21, 1\.00\]$/m },
  policy: { shows: /^pay {2}\w+ on record, ask by no rule {2}\d calls?$/m },
  checkpoint: { shows: /^example\.com\/agents$/m },
  export: { after: 'head -n 1 run.jsonl', shows: /^\{"runId":".*"type":"run_started"/m },
  import: { before: 'tallystick export runs.db > run.jsonl', shows: /^imported {2}2 runs, \d+ events$/m },
  redact: {
    after: 'tallystick verify runs.db',
    shows: /the content of \d+ events is redacted by \S+ \(ticket 4711\)$/m,
  },
  retain: { after: 'tallystick verify runs.db', shows: /^ledger {2}ok {2}2 runs/m },
  erase: { shows: /^Destroyed 1 key of customer-7\./m },
  mcp: { shows: /^ok {6}files {2}14 tools, revision 2025-11-25$/m },
  contract: { shows: /^\d+ promises: \d+ kept, 0 broken, \d+ skipped$/m },
  completion: { after: 'complete -p tallystick', shows: /^complete .*_tallystick tallystick$/m },
}

describe.concurrent('what the help shows as an example, typed as it is printed', () => {
  let folders: ExampleFolders
  beforeAll(async () => {
    folders = await exampleFolders()
  })
  afterAll(() => folders[Symbol.asyncDispose]())

  it.each(verbs)('works: %s', async (verb) => {
    const { stdout: helped } = await tallystickHere(verb, '--help')
    const [, example = ''] = /\nExample:\n {2}(.+)\n$/.exec(helped) ?? []
    expect(example).toContain(`tallystick ${verb} `)
    const { at = 'done', before, after, stopsAfter, shows }: Expectation = expected[verb] ?? { shows: /./ }
    const { folder, environment } = await folders.open(at)
    const script = [before, example, after].filter((line) => line !== undefined).join(' && ')
    const shell = spawn('bash', ['-c', script], {
      cwd: folder,
      env: environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    if (stopsAfter)
      shell.stdout.on('data', (data: Buffer) => stopsAfter.test(data.toString()) && shell.kill())
    const ended = new Promise<number | null>((resolve) => shell.once('close', resolve))
    const [stdout, stderr, code] = await Promise.all([text(shell.stdout), text(shell.stderr), ended])
    expect({ code, said: stdout + stderr }).toEqual({ code: 0, said: expect.stringMatching(shows) as string })
  })
})

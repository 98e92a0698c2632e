// A process that is killed while a tool writes a file: the process that takes the run over finds out what happened.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createRuntime } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { expect, it, onTestFinished } from 'vitest'
import { effort } from '../../../scripts/testing/effort.ts'
import { filesAgent } from './kit/files-agent.ts'
import { temporaryFolder } from '../../../scripts/testing/temporary-folder.ts'

const killed = fileURLToPath(new URL('./kit/killed-in-write.ts', import.meta.url))

interface Case {
  readonly when: 'before' | 'after'
  readonly name: string
  readonly input: object
  /** How often the call was started, its outcome, and what is there then. */
  readonly starts: number
  readonly outcome: string
  readonly files: Readonly<Record<string, string>>
}

const write = { name: 'write_file', input: { path: 'a.txt', content: 'new' } }
const edit = { name: 'edit_file', input: { path: 'a.txt', oldText: 'old', newText: 'new' } }
const move = { name: 'move_file', input: { from: 'a.txt', to: 'b.txt' } }
const sure = { outcome: 'success', files: { 'a.txt': 'new' } }
const cases: readonly Case[] = [
  { ...write, ...sure, when: 'before', starts: 2 },
  { ...write, ...sure, when: 'after', starts: 1 },
  { ...edit, ...sure, when: 'before', starts: 2 },
  { ...edit, ...sure, when: 'after', starts: 1, outcome: 'interrupted' },
  { ...move, when: 'before', starts: 2, outcome: 'success', files: { 'b.txt': 'old' } },
  { ...move, when: 'after', starts: 1, outcome: 'interrupted', files: { 'a.txt': 'old', 'b.txt': 'old' } },
]

it.each(effort({ quick: cases.slice(0, 1), thorough: cases }))(
  'given a process killed $when the last step of $name, when another takes the run over, then the call ends as $outcome',
  async ({ when, name, input, starts, outcome, files }) => {
    const folder = temporaryFolder()
    const [root, database] = [join(folder, 'root'), join(folder, 'runs.db')]
    mkdirSync(root)
    writeFileSync(join(root, 'a.txt'), 'old')
    const child = spawn(
      process.execPath,
      ['--no-warnings', killed, database, root, when, name, JSON.stringify(input)],
      { stdio: ['ignore', 'inherit', 'inherit'] },
    )
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])

    const ledger = sqliteLedger(database)
    onTestFinished(() => ledger.close())
    const agent = filesAgent(root, [{ text: 'Done.' }])
    const [{ runId } = { runId: '' }] = await Array.fromAsync(ledger.runs())
    const run = createRuntime({ ledger, agents: [agent] }).resume(runId)
    expect(await run.result).toMatchObject({ status: 'done', reason: 'answered' })
    const events = await Array.fromAsync(ledger.read(run.id))
    expect(events.filter(({ type }) => type === 'tool_started')).toHaveLength(starts)
    expect(events.find(({ type }) => type === 'tool_result')).toMatchObject({ outcome })
    const there = readdirSync(root).map((each) => [each, readFileSync(join(root, each), 'utf8')])
    expect(Object.fromEntries(there)).toEqual(files)
  },
)

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RuntimeEvent } from '@tallystick/core'
import { describe, expect, it, afterEach, beforeEach, vi } from 'vitest'
import { openPager } from '../src/terminal/pager.ts'
import { rawCharacters } from './kit/raw-characters.ts'
import { callOf, openShop } from './kit/shop.ts'
import { json, tallystickAttended, tallystickHere, type Ending } from './kit/tallystick.ts'
import { hostile, villain, villainConfig } from './kit/villain.ts'
import { spawnAtTerminal } from './kit/whole-output.ts'

const config = ['--config', villainConfig]

/** What this package itself sends to a terminal: styles, the reset in front of a question, and the moves of readline. */
const own = new RegExp(
  String.raw`\u001B\[\d*[mGJK]|\u001B\\\u001B\[!p\u001B\[0m\u001B\(B\u000F\u001B\[\?7h\u001B\[\?25h|\r`,
  'g',
)

/** What a command left raw, on either stream. */
function rawIn({ stdout, stderr }: Ending): readonly string[] {
  return rawCharacters(stdout.replaceAll(own, '') + stderr.replaceAll(own, ''))
}

describe('a run whose every text does something to a terminal', () => {
  it('does nothing to it, whichever verb prints it', async () => {
    await using shop = await openShop()
    const { ledgerPath: ledger, folder } = shop
    const waiting = await shop.start(villain(), { sessionId: 'one' })
    const { runId } = waiting
    const strange = join(folder, 'strange.jsonl')
    const exported = await tallystickHere('export', ledger)
    await writeFile(strange, exported.stdout.replaceAll('"villain"', JSON.stringify(hostile)))
    const other = join(folder, 'other.db')
    const commands: readonly (readonly string[])[] = [
      ['list', ledger],
      ['show', ledger, runId],
      ['show', ledger, runId, '--events'],
      ['show', ledger, runId, '--request'],
      ['tail', ledger, runId, '--until-suspended'],
      ['explain', ledger, runId, '2'],
      ['stats', ledger],
      ['verify', ledger],
      ['export', ledger],
      ['approve', ledger, runId, callOf(waiting), '--by', hostile],
      ['show', ledger, runId],
      ['deny', ledger, runId, callOf(waiting), '--by', hostile, '--reason', hostile],
      ['resume', ledger, runId, ...config],
      ['fork', ledger, runId, '--input', hostile, '--yes', ...config],
      ['diff', ledger, runId, 'latest'],
      ['replay', ledger, runId, ...config],
      ['run', ledger, hostile, ...config],
      ['run', ledger, hostile, '--deny', hostile, ...config],
      ['cancel', ledger, 'latest', '--reason', hostile],
      ['list', ledger, '--session', hostile],
      ['show', ledger, hostile],
      ['show', hostile, hostile],
      ['import', other, strange],
      ['list', other],
      ['show', other, runId],
      ['stats', other],
      [hostile],
      ['run', ledger, 'x', `--${hostile}`],
    ]
    for (const words of commands) {
      const ending = await tallystickHere(...words)
      expect({ words, raw: rawIn(ending) }).toEqual({ words, raw: [] })
      expect({ words, printed: ending.stdout + ending.stderr }).not.toEqual({ words, printed: '' })
    }
    const { stdout } = await tallystickHere('show', ledger, runId)
    expect(stdout).toContain(String.raw`Done.\u001b[8m`)
  })

  it('is JSON of the same value where JSON is printed, and does nothing to a terminal either', async () => {
    await using shop = await openShop()
    const { ledgerPath: ledger } = shop
    const { runId } = await shop.start(villain())
    const commands: readonly (readonly string[])[] = [
      ['list', ledger],
      ['show', ledger, runId],
      ['tail', ledger, runId, '--until-suspended'],
      ['explain', ledger, runId, '2'],
      ['stats', ledger],
      ['verify', ledger],
      ['run', ledger, hostile, ...config],
      ['show', ledger, hostile],
    ]
    for (const words of commands) {
      const ending = await tallystickHere(...words, '--json')
      expect({ words, raw: rawIn(ending) }).toEqual({ words, raw: [] })
      const lines = (ending.stdout || ending.stderr).trimEnd().split('\n')
      expect({ words, data: lines.map(json) }).not.toEqual({ words, data: [] })
    }
    const { stdout } = await tallystickHere('tail', ledger, runId, '--until-suspended', '--json')
    const events = stdout.trimEnd().split('\n').map(json) as RuntimeEvent[]
    const said = events.flatMap((event) => (event.type === 'tool_result' ? [event.content] : []))
    expect(said).toContainEqual([{ type: 'text', text: hostile }])
  })

  it('does nothing to a terminal where a person is asked, and adds no styles', async () => {
    await using shop = await openShop()
    const ending = await tallystickAttended(
      { answers: ['\n', '\n', '\n', 'y\n'], rows: 24 },
      'run',
      shop.ledgerPath,
      hostile,
      ...config,
    )
    expect(rawIn(ending)).toEqual([])
    expect(ending.stdout).not.toContain('\u001B[8m')
    expect(ending.stdout).toContain('Bye.')
  })

  it('is as it was said where the answer alone goes to a file', async () => {
    await using shop = await openShop()
    const words = ['run', shop.ledgerPath, 'Hi.', '--yes', '--answer', ...config]
    expect((await tallystickHere(...words)).stdout).toBe(`Bye. ${hostile}\n`)
    expect(rawIn(await tallystickAttended({}, ...words))).toEqual([])
  })
})

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

it('a program at a terminal has its last output read, however late its reader is', async () => {
  const program = spawnAtTerminal('/bin/sh', ['-c', 'echo the last words'], {})
  let output = ''
  program.pause()
  program.onData((text) => (output += text))
  const ended = new Promise<number>((resolve) => program.onExit(({ exitCode }) => resolve(exitCode)))
  // node-pty has heard of the end, and its time to close the terminal is over.
  while (vi.getTimerCount() === 0) await new Promise(setImmediate)
  vi.runAllTimers()
  program.resume()
  expect([await ended, output]).toEqual([0, 'the last words\r\n'])
})

it.each([
  ['names none', { PAGER: '' }],
  ['names blanks', { PAGER: ' ' }],
  ['names cat', { PAGER: 'cat' }],
  ['names none, and has no less', { PATH: '/no/such/folder' }],
  ['is empty', {}],
])('no pager is started where the environment %s', (_, environment) => {
  expect(openPager(environment, (text) => text)).toBeUndefined()
})

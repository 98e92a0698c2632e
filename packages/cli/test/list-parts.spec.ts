// Lists of more runs than are looked up at once, and what the list says where there are no runs, or more.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunId } from '@tallystick/core'
import { sampleFacts, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { json, tallystickHere, tallystickRead } from './kit/tallystick.ts'

const many = 130
let folder: string
let path: string
const ordinals = Array.from({ length: many }, (_, index) => index + 1)
const idOf = (ordinal: number): RunId => sampleRunId(ordinal)

/** Runs 1 to 130, each a minute after the one before it; every tenth is of one session, and the last is unfinished. */
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tallystick-list-parts-'))
  path = join(folder, 'runs.db')
  const ledger = sqliteLedger(path)
  for (const ordinal of ordinals) {
    const runId = idOf(ordinal)
    const { run_started, input_received: input, run_finished: end } = sampleFacts(runId)
    const { sessionId: _session, sessionPlace: _place, parent: _parent, ...start } = run_started
    const session = ordinal % 10 === 0 ? { sessionId: 'chat', sessionPlace: ordinal / 10 } : {}
    const ended = { ...end, turn: 0, turns: 0, toolCalls: 0, usage: {} }
    const facts = [
      { ...start, ...session },
      { ...input, message: sampleMessage(`question ${ordinal}`) },
      ...(ordinal === many ? [] : [ended]),
    ]
    const events = stampFacts(runId, facts).map((event) => ({ ...event, at: event.at + ordinal * 60_000 }))
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
  }
  await ledger.close()
})
afterAll(() => rmSync(folder, { recursive: true }))

const newestFirst = ordinals.toReversed()
/** The lines of a table after its head. */
const rowsIn = (text: string): readonly string[] => text.trimEnd().split('\n').slice(1)

/** The runs that are listed as JSON, by their ordinals, with their inputs. */
async function listed(...words: readonly string[]): Promise<readonly (readonly [number, unknown])[]> {
  const { code, stdout, stderr } = await tallystickHere('list', path, '--json', ...words)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const rows = stdout === '' ? [] : stdout.trimEnd().split('\n').map(json)
  return (rows as readonly { runId: string; input: unknown }[]).map(({ runId, input }) => [
    ordinals.find((ordinal) => idOf(ordinal) === runId) ?? 0,
    input,
  ])
}
const withInput = (some: readonly number[]): readonly (readonly [number, unknown])[] =>
  some.map((ordinal) => [ordinal, `question ${ordinal}`])

describe('a list of many runs', () => {
  it('given more than are looked up at once, when they are listed, then each once, the newest first, with its input', async () => {
    expect(await listed()).toEqual(withInput(newestFirst))
    for (const limit of [1, 63, 64, 65, 128, 129, 130]) {
      expect(await listed('--limit', `${limit}`)).toEqual(withInput(newestFirst.slice(0, limit)))
    }
    expect(await listed('--before', idOf(66))).toEqual(withInput(newestFirst.slice(65)))
  })

  it('given a session, when its runs are listed, then from any of them on', async () => {
    const ofSession = newestFirst.filter((ordinal) => ordinal % 10 === 0)
    expect(await listed('--session', 'chat')).toEqual(withInput(ofSession))
    expect(await listed('--session', 'chat', '--before', idOf(50))).toEqual(withInput([40, 30, 20, 10]))
    expect(await listed('--session', 'chat', '--status', 'interrupted')).toEqual(withInput([130]))
    expect(await listed('--session', 'chat', '--limit', '2')).toEqual(withInput([130, 120]))
  })

  it('given no process that drives runs, when they are listed by status, then none is under way', async () => {
    expect(await listed('--status', 'under_way')).toEqual([])
    expect(await listed('--status', 'interrupted')).toEqual(withInput([130]))
    expect(await listed('--status', 'failed')).toEqual([])
    expect(await listed('--status', 'done')).toEqual(withInput(newestFirst.slice(1)))
  })

  it('given a person who reads, when there are more, then fifty are shown, with the command for the next page', async () => {
    const first = await tallystickRead(160, 'list', path)
    expect(rowsIn(first.stdout)).toHaveLength(50)
    expect(first.stderr).toContain(
      `There are more. The next page: tallystick list ${path} --before ${idOf(81)}\n`,
    )
    const words = ['--session', 'chat', '--status', 'done', '--agent', 'assistant', '--since', '2000-01-01']
    const next = await tallystickRead(160, 'list', path, ...words, '--limit', '3')
    expect(next.stderr).toContain(
      `tallystick list ${path} ${words.join(' ')} --limit 3 --before ${idOf(100)}\n`,
    )
    const last = await tallystickRead(160, 'list', path, '--before', idOf(51))
    expect(rowsIn(last.stdout)).toHaveLength(50)
    expect(last.stderr).not.toContain('There are more')
    expect((await tallystickHere('list', path, '--limit', '3')).stderr).not.toContain('There are more')
  })

  it('given filters that no run fits, when it is listed, then the list says which runs there are not', async () => {
    const said = async (...words: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await tallystickHere('list', path, ...words)
      expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
      return stderr
    }
    const none = 'This ledger holds no runs'
    expect(await said('--agent', 'cook')).toBe(`${none} of agent cook.\n`)
    expect(await said('--status', 'suspended')).toBe(`${none} that are suspended.\n`)
    expect(await said('--tool', 'pay')).toBe(`${none} with a call of pay.\n`)
    expect(await said('--outcome', 'failed')).toBe(`${none} with a call that ended as failed.\n`)
    expect(await said('--tool', 'pay', '--outcome', 'failed')).toBe(
      `${none} with a call of pay that ended as failed.\n`,
    )
    expect(await said('--before', idOf(1))).toBe(`${none} after ${idOf(1)}.\n`)
    expect(await said('--since', '2999-01-01')).toBe(`${none} with an event since 2999-01-01.\n`)
    expect(await said('--session', 'none', '--agent', 'cook')).toBe(
      `${none} of session none of agent cook.\n`,
    )
  })
})

describe('find', () => {
  it('given words far into what was said, when they are found, then a part around them is shown', async () => {
    const { stdout } = await tallystickHere('find', path, '--text', 'question 77')
    expect(stdout).toMatch(/ input_received question 77\n$/)
    const several = await tallystickHere('find', path, '--text', 'QUESTION 13')
    expect(several.stdout.trimEnd().split('\n')).toHaveLength(2)
    expect(
      (await tallystickHere('find', path, '--text', 'question', '--limit', '7')).stdout.match(/\n/g),
    ).toHaveLength(7)
    const none = await tallystickHere('find', path, '--text', 'nothing of this')
    expect(none).toEqual({ code: 0, stdout: '', stderr: 'Nothing of the kind is on record.\n' })
    const asked = await tallystickHere('find', path)
    expect(asked.code).toBe(2)
    expect(asked.stderr).toContain('Say what to look for: --tool NAME')
  })

  it('given a person who reads, when something is found, then the command that shows the last of it whole follows', async () => {
    const { stdout, stderr } = await tallystickRead(60, 'find', path, '--text', 'question 77')
    expect(stderr).toBe(`See one whole: tallystick show ${path} ${idOf(77)} --event 2\n`)
    expect(stdout.startsWith(`${idOf(77).slice(-8)}     2  `)).toBe(true)
    const inRun = await tallystickHere('find', path, '--run', idOf(77), '--text', 'question')
    expect(inRun.stdout.trimEnd().split('\n')).toHaveLength(1)
    const ofSession = await tallystickHere('find', path, '--session', 'chat', '--text', 'question')
    expect(ofSession.stdout.trimEnd().split('\n')).toHaveLength(13)
  })
})

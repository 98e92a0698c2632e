// What the verbs say that take content away, and that bring runs in and out of a ledger, where the usual is not the case.
import { writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { createRuntime, defineAgent, type Agent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { sqliteKeyring, sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { openShop, shopAgent } from './kit/shop.ts'
import { json, tallystickAt, tallystickFed, tallystickHere } from './kit/tallystick.ts'

/** An agent that calls nothing. */
function host(): Agent {
  return defineAgent({ name: 'host', instructions: '', model: scriptedModel([{ text: 'Hello.' }]) })
}

describe('redact', () => {
  it('given content that is gone, when it is taken away again, then it says so; by the account where no name is given', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    const words = ['redact', shop.ledgerPath, 'latest', '--reason', 'ticket 7', '--events', '2']
    const first = await tallystickHere(...words, '--json')
    expect(json(first.stdout)).toEqual({ runId, removed: 1, by: userInfo().username, reason: 'ticket 7' })
    const again = await tallystickHere(...words)
    expect(again).toEqual({ code: 0, stdout: '', stderr: `Nothing of that was left in run ${runId}.\n` })
  })
})

describe('retain', () => {
  it('given content that is old, when it is taken away, then it says of how many events, and the reason is on record', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start(host())
    const content = ['retain', shop.ledgerPath, '--content', '1d']
    const later = Date.UTC(2100, 0, 1)
    const dry = await tallystickAt(later, ...content, '--dry-run')
    expect(dry.stderr).toMatch(/^Would remove: the content of \d+ events\.$/m)
    const taken = await tallystickAt(later, ...content, '--by', 'nightly', '--reason', 'the rules')
    expect(taken.stderr).toContain(dry.stderr.trim().replace('Would remove', 'Removed'))
    const verified = await tallystickHere('verify', shop.ledgerPath, '--run', runId)
    expect(verified.stdout).toContain('is expired by nightly (the rules)')
  })
})

describe('erase', () => {
  it('given keys of a subject, when they are destroyed, then it counts them, and names the copies of the file', async () => {
    await using shop = await openShop()
    const path = join(shop.folder, 'keys.db')
    const keys = sqliteKeyring(path)
    const ledger = sqliteLedger(shop.ledgerPath, { keys })
    await createRuntime({ ledger }).run(shopAgent(), 'Buy tea.', { subject: 'customer-7' }).result
    await ledger.close()
    keys.close()
    expect(await tallystickHere('erase', path, 'customer-7')).toEqual({
      ...{ code: 0, stdout: '' },
      stderr: `Destroyed 1 key of customer-7. Copies of ${path} are yours to destroy.\n`,
    })
    const again = await tallystickHere('erase', path, 'customer-7')
    expect(again.stderr).toContain('The keyring has no key of customer-7')
  })
})

describe('export and import', () => {
  it('given one run, when it is exported, then no other is; a second import says how many events were there', async () => {
    await using shop = await openShop()
    const { runId, seq } = await shop.start()
    await shop.start()
    const one = await tallystickHere('export', shop.ledgerPath, '--run', runId)
    const lines = one.stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(seq)
    expect(lines.every((line) => line.includes(runId))).toBe(true)
    const copy = join(shop.folder, 'copy.db')
    const file = join(shop.folder, 'run.jsonl')
    writeFileSync(file, one.stdout)
    const first = await tallystickHere('import', copy, file)
    expect(first.stdout).toBe(`${runId}  ${seq} events\nimported  1 run, ${seq} events\n`)
    const again = await tallystickHere('import', copy, file)
    expect(again.stdout).toBe(
      `${runId}  0 events, ${seq} were there\nimported  1 run, 0 events, ${seq} were there\n`,
    )
    const fed = await tallystickFed(one.stdout, 'import', join(shop.folder, 'fed.db'), '-', '--json')
    expect(fed.stdout.trimEnd().split('\n').map(json)).toMatchObject([
      { runId, events: seq, present: 0 },
      { runs: 1, events: seq, present: 0 },
    ])
  })

  it('given one run, when it is verified, then no other is', async () => {
    await using shop = await openShop()
    const { runId, seq } = await shop.start()
    const other = await shop.start()
    const { code, stdout } = await tallystickHere('verify', shop.ledgerPath, '--run', runId)
    expect(code).toBe(0)
    expect(stdout).toContain(`${runId}  ok  ${seq} events`)
    expect(stdout).not.toContain(other.runId)
  })
})

describe('policy check on a ledger', () => {
  it('given calls that no rule is about, when the rules are tried, then that is said of each tool; and where there is no call', async () => {
    await using shop = await openShop()
    const rules = join(shop.folder, 'rules.json')
    writeFileSync(rules, JSON.stringify({ version: 1, rules: [{ tool: 'other', decision: 'deny' }] }))
    await shop.start(host())
    const empty = await tallystickHere('policy', 'check', rules, shop.ledgerPath)
    expect(empty).toMatchObject({ code: 0, stderr: 'The ledger holds no call that was checked.\n' })
    await shop.start()
    const { stdout } = await tallystickHere('policy', 'check', rules, shop.ledgerPath)
    expect(stdout).toContain('look  allow on record, ask by no rule  1 call\n')
    expect(stdout).toContain('pay  ask on record, ask by no rule  1 call\n')
    expect(stdout).toContain('1 rule, 0 examples: 0 hold, 0 do not\n')
  })
})

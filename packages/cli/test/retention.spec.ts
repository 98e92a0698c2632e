import { join } from 'node:path'
import { createRuntime } from '@tallystick/core'
import { sqliteKeyring, sqliteLedger } from '@tallystick/ledger/sqlite'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { callOf, openShop, shopAgent, type Shop } from './kit/shop.ts'
import { json, tallystickAt, tallystickHere } from './kit/tallystick.ts'

const dayMs = 86_400_000

afterEach(() => vi.unstubAllEnvs())

/** A run that was driven to its end, and when that was. */
async function endedRun(shop: Shop): Promise<{ runId: string; at: number }> {
  const started = await shop.start()
  const ledger = sqliteLedger(shop.ledgerPath)
  const agent = shopAgent()
  const runtime = createRuntime({ ledger, agents: [agent] })
  await runtime.resume(started.runId).deny(callOf(started), { by: 'ann', reason: 'too dear' })
  await runtime.resume(started.runId).result
  await runtime.idle()
  let at = 0
  for await (const event of ledger.read(started.runId)) at = event.at
  await ledger.close()
  return { runId: started.runId, at }
}

describe('redact', () => {
  it('takes away what events said, and leaves on record who did and why', async () => {
    await using shop = await openShop()
    const { runId, seq } = await shop.start()
    const words = ['redact', shop.ledgerPath, 'latest', '--by', 'ann', '--reason', 'ticket 7']
    const one = await tallystickHere(...words, '--events', '2', '--json')
    expect([one.code, json(one.stdout)]).toEqual([0, { runId, removed: 1, by: 'ann', reason: 'ticket 7' }])
    const rest = await tallystickHere(...words, '--events', '1-3')
    expect(rest.stderr).toContain(`The content of 2 events of run ${runId} is gone for good.`)
    const verified = await tallystickHere('verify', shop.ledgerPath)
    expect(verified.code).toBe(0)
    expect(verified.stdout).toContain(
      `${runId}  ok  ${seq} events; the content of 2 events is redacted by ann (ticket 7); the content of 1 event is redacted by ann (ticket 7)`,
    )
    const shown = await tallystickHere('show', shop.ledgerPath, runId)
    expect(shown.stdout).toMatch(/^content +not all there, from event 1 on; verify says why$/m)
    expect(shown.stdout).toContain('[removed]')
    expect(shown.stdout).not.toContain('Buy tea')
    await tallystickHere(...words, '--all')
    const exported = await tallystickHere('export', shop.ledgerPath)
    expect(exported.stdout).not.toContain('tea')
  })

  it.each([
    [['--reason', 'x'], 'Give either --events SEQS or --all'],
    [['--reason', 'x', '--all', '--events', '2'], 'Give either --events SEQS or --all'],
    [['--events', '2'], '--reason'],
    [['--reason', 'x', '--events', '3-2'], 'numbers of events such as 4 or 4,7-9'],
    [['--reason', 'x', '--events', 'two'], 'numbers of events such as 4 or 4,7-9'],
  ])('refuses %j with a 2', async (options, said) => {
    await using shop = await openShop()
    await shop.start()
    const { code, stderr } = await tallystickHere('redact', shop.ledgerPath, 'latest', ...options)
    expect([code, stderr]).toEqual([2, expect.stringContaining(said)])
  })
})

describe('retain', () => {
  it('takes away what is older than given, and whole runs at last', async () => {
    await using shop = await openShop()
    const { runId, at } = await endedRun(shop)
    const retain = (days: number, ...words: readonly string[]) =>
      tallystickAt(at + days * dayMs + 1, 'retain', shop.ledgerPath, ...words)
    const ages = ['--deltas', '1d', '--content', '90d', '--facts', '2y']
    expect((await retain(0, ...ages)).stderr).toBe('Nothing is older than that.\n')
    const dry = await retain(1, ...ages, '--dry-run')
    expect(dry.stderr).toMatch(/^Would remove: \d+ deltas\.$/m)
    expect((await retain(1, ...ages)).stderr).toBe(dry.stderr.replace('Would remove', 'Removed'))
    const content = await retain(90, ...ages, '--by', 'nightly', '--json')
    expect(json(content.stdout)).toMatchObject({ dryRun: false, deltas: 0, runs: 0 })
    expect((await tallystickHere('export', shop.ledgerPath)).stdout).not.toContain('tea')
    expect((await tallystickHere('stats', shop.ledgerPath)).stdout).toContain('1 done')
    expect((await retain(730, ...ages)).stderr).toMatch(/^Removed: 1 run with \d+ events\.$/m)
    expect((await tallystickHere('show', shop.ledgerPath, runId)).code).toBe(5)
    const verified = await tallystickHere('verify', shop.ledgerPath)
    expect([verified.code, verified.stdout]).toEqual([
      0,
      'ledger  ok  0 runs, 0 events, 0 of them signed; 1 run dropped, on record\n',
    ])
  })

  it('refuses an invalid age, and to be called without any', async () => {
    await using shop = await openShop()
    await shop.start()
    const wrong = await tallystickHere('retain', shop.ledgerPath, '--content', 'long')
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('an age such as 12h, 90d or 2y')])
    expect((await tallystickHere('retain', shop.ledgerPath)).stderr).toContain('at least one of --deltas')
  })
})

describe('erase', () => {
  it('destroys the keys of a subject; until then a reader with the keys reads its runs', async () => {
    await using shop = await openShop()
    const path = join(shop.folder, 'keys.db')
    const keys = sqliteKeyring(path)
    const ledger = sqliteLedger(shop.ledgerPath, { keys })
    const run = createRuntime({ ledger }).run(shopAgent(), 'Buy tea.', { subject: 'customer-7' })
    const { runId } = await run.result
    await ledger.close()
    keys.close()
    const shown = async (): Promise<string> => (await tallystickHere('show', shop.ledgerPath, runId)).stdout
    expect(await shown()).not.toContain('Buy tea.')
    expect((await tallystickHere('verify', shop.ledgerPath)).stdout).toMatch(
      /the content of \d+ events is sealed$/m,
    )
    vi.stubEnv('TALLYSTICK_KEYS', path)
    expect(await shown()).toContain('Buy tea.')
    const erased = await tallystickHere('erase', path, 'customer-7', '--json')
    expect(json(erased.stdout)).toEqual({ subject: 'customer-7', destroyed: [expect.any(String)] })
    expect(await shown()).not.toContain('Buy tea.')
    expect((await tallystickHere('verify', shop.ledgerPath)).stdout).toMatch(
      /the content of \d+ events is erased$/m,
    )
    expect((await tallystickHere('erase', path, 'customer-7')).code).toBe(5)
    expect((await tallystickHere('erase', join(shop.folder, 'none.db'), 'customer-7')).code).toBe(5)
    vi.stubEnv('TALLYSTICK_KEYS', join(shop.folder, 'none.db'))
    const none = await tallystickHere('show', shop.ledgerPath, runId)
    expect([none.code, none.stderr]).toEqual([5, expect.stringContaining('TALLYSTICK_KEYS')])
  })
})

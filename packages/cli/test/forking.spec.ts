import { describe, expect, it } from 'vitest'
import { openShop, shopConfig } from './kit/shop.ts'
import { json, tallystickHere } from './kit/tallystick.ts'

const config = ['--config', shopConfig]

describe('a fork from the command line', () => {
  it('shares the first events, says something else, and is driven to its rest', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    const words = [
      shop.ledgerPath,
      runId,
      '--at',
      '2',
      '--input',
      'Buy coffee.',
      '--reason',
      'no tea',
      '--by',
      'ann',
    ]
    const forked = await tallystickHere('fork', ...words, '--yes', '--json', ...config)
    expect(forked).toMatchObject({ code: 0 })
    const result = json(forked.stdout) as { readonly runId: string }
    expect(result).toMatchObject({ status: 'done', reason: 'answered' })
    expect(result.runId).not.toBe(runId)
    const diff = `tallystick diff ${shop.ledgerPath} ${runId} ${result.runId}`
    expect(forked.stderr).toContain(`shares 2 events with run ${runId}. Compare them with: ${diff}`)

    const exported = await tallystickHere('export', shop.ledgerPath, '--run', result.runId)
    const events = exported.stdout.trimEnd().split('\n').map(json)
    expect(events[0]).toMatchObject({ parent: { runId, seq: 2, relation: 'fork' } })
    expect(events[2]).toMatchObject({ type: 'history_edited', by: 'ann', reason: 'no tea' })
    expect((await tallystickHere('verify', shop.ledgerPath)).code).toBe(0)
    expect((await tallystickHere(...diff.split(' ').slice(1))).code).toBe(0)
  })

  it('at an event that is not there is refused, and nothing is left behind', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    const refused = await tallystickHere('fork', shop.ledgerPath, runId, '--at', '999', ...config)
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('cannot be forked at its event 999')
    const listed = await tallystickHere('list', shop.ledgerPath, '--json')
    expect(listed.stdout.trimEnd().split('\n')).toHaveLength(1)
  })
})

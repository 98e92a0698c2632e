import { join } from 'node:path'
import { ledgerContract } from '@tallystick/ledger/contract'
import { describe, expect, it } from 'vitest'
import { json, tallystick, tallystickHere } from './kit/tallystick.ts'
import { effort } from '../../../scripts/testing/effort.ts'

const stores = join(import.meta.dirname, 'kit', 'stores')
const [sound, forgetful] = [join(stores, 'sound.ts'), join(stores, 'forgetful.ts')]

interface Verdict {
  readonly promise: string
  readonly verdict: string
  readonly why?: string
}

describe('contract', () => {
  it('says of a store that keeps every promise that it does', async () => {
    // All of them in a thorough run; `sqlite-ledger.contract.ts` holds the store to them as well.
    const part = effort({ quick: 'inbox', thorough: '' })
    const held = ledgerContract.filter(({ promise }) => promise.includes(part))
    const { code, stdout, stderr } = await tallystickHere(
      'contract',
      sound,
      ...(part === '' ? [] : ['--only', part]),
    )
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const count = held.length
    expect(count).toBeGreaterThan(1)
    const lines = stdout.trimEnd().split('\n')
    expect(lines.pop()).toBe(`${count} promises: ${count} kept, 0 broken, 0 skipped`)
    expect(lines).toEqual(held.map(({ promise }) => `kept     ${promise}`))
  })

  it('names each promise that a store breaks, with what was expected and what was found, and ends with 1', async () => {
    const { code, stdout } = await tallystickHere('contract', forgetful, '--json', '--only', 'of a type')
    expect(code).toBe(1)
    const [verdict, sum] = stdout.trimEnd().split('\n').map(json)
    expect(verdict).toEqual({
      promise: 'events of a type are found in all runs',
      verdict: 'broken',
      why: expect.stringMatching(
        /^TallystickError: The ledger breaks its contract: what \{"types":\["tool_result"\]\} finds should be/,
      ),
    })
    expect(sum).toEqual({ promises: 1, kept: 0, broken: 1, skipped: 0 })
  })

  it('leaves out what a store is not meant to be, and says so', async () => {
    const { code, stdout } = await tallystickHere('contract', forgetful, '--only', 'outlive')
    expect(code).toBe(0)
    expect(stdout).toContain(
      'skipped  facts that are recorded once outlive closing\n         the store is not durable\n',
    )
    expect(stdout).toMatch(/(\d+) promises: 0 kept, 0 broken, \1 skipped\n$/)
  })

  it('ends a promise that nothing comes of, and takes it for broken', async () => {
    const words = ['--only', 'is hinted at', '--seconds', '0.02', '--json']
    const { code, stdout } = await tallystickHere('contract', forgetful, ...words)
    expect(code).toBe(1)
    const verdicts = stdout.trimEnd().split('\n').map(json) as readonly Verdict[]
    const append = verdicts.find(({ promise }) => promise.startsWith('an append is hinted at'))
    expect(append).toMatchObject({ verdict: 'broken', why: 'nothing has come of it within 20 ms' })
  })

  it('comes to its end with a verdict on every promise where each append fails', async () => {
    const { code, stdout, stderr } = await tallystickHere('contract', join(stores, 'failing.ts'))
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
    const lines = stdout.trimEnd().split('\n')
    expect(lines.at(-1)).toMatch(
      new RegExp(`^${ledgerContract.length} promises: \\d+ kept, \\d+ broken, \\d+ skipped$`),
    )
    expect(stdout).toContain('Error: no space left on device')
    expect(stdout).toContain('its store cannot be removed: Error: the folder is busy')
  })

  it('counts what a store leaves unhandled as its fault, and continues with the next promise', async () => {
    const { code, stdout, stderr } = await tallystick('contract', join(stores, 'littering.ts'), '--json')
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
    const verdicts = stdout.trimEnd().split('\n').slice(0, -1).map(json) as readonly Verdict[]
    expect(verdicts.map(({ promise }) => promise)).toEqual(ledgerContract.map(({ promise }) => promise))
    const whys = verdicts.map(({ why }) => why)
    expect(whys).toContain('the store left behind Error: the replica is away')
    expect(verdicts.find(({ promise }) => promise.includes('take-over'))?.verdict).toBe('broken')
    expect(verdicts.some(({ verdict }) => verdict === 'kept')).toBe(true)
  })

  it('is wrong use where there is no module, or none that makes stores, or none of the words', async () => {
    const missing = await tallystickHere('contract', join(stores, 'nowhere.ts'))
    expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining('There is no file') })
    const none = await tallystickHere('contract', join(stores, 'none.ts'))
    expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining('makes no stores') })
    const ledger = await tallystickHere('contract', join(stores, 'a-ledger.ts'))
    expect(ledger).toMatchObject({
      ...{ code: 2, stdout: '' },
      stderr: expect.stringMatching(
        /what the first argument returns .* expected \{ open, remove\?, lacks\? \}/,
      ),
    })
    const unknown = await tallystickHere('contract', sound, '--only', 'unicorn')
    expect(unknown).toMatchObject({ code: 5, stderr: expect.stringContaining('"unicorn"') })
  })
})

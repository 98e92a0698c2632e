import type { TailedEvent } from '@tallystick/core/vocabulary'
import { expect, it } from 'vitest'
import { tailAll } from '../src/verbs/tail.ts'
import { openShop } from './kit/shop.ts'
import { json } from './kit/tallystick.ts'

/** Stops the command that listens for a signal, and no other listener. */
const stop = (): void => process.listeners('SIGTERM').at(-1)?.('SIGTERM')

it('every event of a ledger is a line for programs, and a story for people, from a cursor on', async () => {
  await using shop = await openShop()
  const { runId, seq } = await shop.start()
  const printed = async (isJson: boolean, last: string, after?: TailedEvent['cursor']) => {
    let [data, shown] = ['', '']
    const paint = (_style: string, text: string): string => text
    const look = (): void => {
      if (`${data}${shown}`.includes(last)) stop()
    }
    const context = {
      json: isJson,
      print: async (text: string) => {
        data += text
        look()
      },
      view: {
        write: (text: string) => {
          shown += text
          look()
        },
        paint,
      },
    }
    await tailAll(context as never, shop.ledgerPath, after)
    return { shown, lines: data === '' ? [] : (data.trimEnd().split('\n').map(json) as TailedEvent[]) }
  }
  const programs = await printed(true, '"approval_requested"')
  expect(programs.shown).toBe('')
  expect(programs.lines.map(({ event }) => [event.runId, event.seq])).toEqual(
    Array.from({ length: seq }, (_, index) => [runId, index + 1]),
  )
  const later = await printed(true, '"approval_requested"', programs.lines[1]!.cursor)
  expect(later.lines).toEqual(programs.lines.slice(2))
  const people = await printed(false, 'needs an approval')
  expect(people.lines).toEqual([])
  expect(people.shown).toMatch(new RegExp(`^── ${runId}\nrun ${runId} of shopper`))
})

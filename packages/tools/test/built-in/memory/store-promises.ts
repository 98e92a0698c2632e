// What every store of memories promises, as cases for any of them.
import { hostileTexts } from '@tallystick/testkit'
import type { MemoryOwner, MemoryStore } from '@tallystick/tools/memory'
import { expect, it } from 'vitest'
import { toSearchPhrases } from '../../../src/built-in/memory/memory-store.ts'

let owners = 0
/** An owner that no other case has. */
const newOwner = (): MemoryOwner => ({ owner: `subject:case ${++owners}` })

export function storePromises(open: () => MemoryStore): void {
  const save = (owner: MemoryOwner, text: string, key = text, max = 100) =>
    open().save(owner, { key, text, at: 1_700_000_000_000, max })
  const found = async (owner: MemoryOwner, query: string, limit = 10): Promise<readonly string[]> =>
    (await open().search(owner, toSearchPhrases(query), limit)).map(({ text }) => text)
  const listed = async (owner: MemoryOwner, limit = 10, before?: number): Promise<readonly string[]> =>
    (await open().list(owner, limit, before)).map(({ text }) => text)

  it('saves once for each key, and numbers the memories of each owner from 1', async () => {
    const [ann, bob] = [newOwner(), newOwner()]
    expect(await save(ann, 'first', 'a')).toEqual({ id: 1, text: 'first', at: 1_700_000_000_000 })
    expect(await save(ann, 'second', 'b')).toMatchObject({ id: 2 })
    expect(await save(ann, 'another text', 'a')).toEqual({ id: 1, text: 'first', at: 1_700_000_000_000 })
    expect(await save(bob, 'of bob', 'a')).toMatchObject({ id: 1, text: 'of bob' })
    expect(await listed(ann)).toEqual(['second', 'first'])
    expect(await open().savedUnder(ann, 'b')).toEqual({ id: 2, text: 'second', at: 1_700_000_000_000 })
    expect(await open().savedUnder(bob, 'b')).toBeUndefined()
  })

  it('lets of calls at the same time under one key save one memory, and gives each its own number', async () => {
    const owner = newOwner()
    const same = await Promise.all(Array.from({ length: 4 }, () => save(owner, 'tent', 'k')))
    expect(new Set(same.map((saved) => saved !== 'full' && saved.id))).toEqual(new Set([1]))
    await Promise.all(['a', 'b', 'c', 'd'].map((text) => save(owner, text)))
    expect((await open().list(owner, 10)).map(({ id }) => id)).toEqual([5, 4, 3, 2, 1])
  })

  it('is full at the most that an owner may have, until one is removed', async () => {
    const [owner, other] = [newOwner(), newOwner()]
    for (const text of ['a', 'b']) expect(await save(owner, text, text, 2)).toMatchObject({ text })
    expect(await save(owner, 'c', 'c', 2)).toBe('full')
    expect(await save(owner, 'a', 'a', 2)).toMatchObject({ id: 1 })
    expect(await save(other, 'c', 'c', 2)).toMatchObject({ id: 1 })
    expect(await open().remove(owner, 1, 'del')).toBe(true)
    expect(await save(owner, 'c', 'c', 2)).toMatchObject({ id: 3 })
  })

  it('removes once for each key, and shows nothing of it any more', async () => {
    const [owner, other] = [newOwner(), newOwner()]
    await save(owner, 'blue tent', 'k1')
    await save(owner, 'green tent', 'k2')
    expect(await open().remove(other, 1, 'r')).toBe(false)
    expect(await open().wasRemovedUnder(owner, 'r')).toBe(false)
    expect(await open().remove(owner, 1, 'r')).toBe(true)
    expect(await open().remove(owner, 1, 'r')).toBe(true)
    expect(await open().remove(owner, 2, 'r')).toBe(true)
    expect(await open().remove(owner, 1, 'other')).toBe(false)
    expect(await open().wasRemovedUnder(owner, 'r')).toBe(true)
    expect(await open().wasRemovedUnder(other, 'r')).toBe(false)
    expect(await found(owner, 'tent')).toEqual(['green tent'])
    expect(await listed(owner)).toEqual(['green tent'])
    // A late retry of the call that saved it does not bring it back.
    expect(await save(owner, 'blue tent', 'k1')).toMatchObject({ id: 1, text: '' })
    expect(await open().savedUnder(owner, 'k1')).toMatchObject({ id: 1, text: '' })
    expect(await listed(owner)).toEqual(['green tent'])
  })

  it('forgets that it removed something after twice as many more, and numbers on', async () => {
    const owner = newOwner()
    for (let id = 1; id <= 3; id++) {
      expect(await save(owner, `text ${id}`, `k${id}`, 1)).toMatchObject({ id })
      expect(await open().savedUnder(owner, 'k1')).toMatchObject({ id: 1 })
      expect(await open().remove(owner, id, `r${id}`)).toBe(true)
    }
    await save(owner, 'text 4', 'k4', 1)
    expect(await open().savedUnder(owner, 'k1')).toBeUndefined()
    expect(await open().savedUnder(owner, 'k2')).toMatchObject({ id: 2 })
    expect(await listed(owner)).toEqual(['text 4'])

    const other = newOwner()
    for (let id = 1; id <= 6; id++) {
      await save(other, `text ${id}`, `k${id}`, 2)
      const first = await open().savedUnder(other, 'k1')
      expect(first?.id).toBe(id <= 5 ? 1 : undefined)
      await open().remove(other, id, `r${id}`)
    }
  })

  it('finds words, without case and accents, also by their beginning', async () => {
    const owner = newOwner()
    for (const text of ['The café is in Łódź.', 'Her tent is a TENTORIUM.', 'No sugar.'])
      await save(owner, text)
    expect(await found(owner, 'CAFE')).toEqual(['The café is in Łódź.'])
    expect(await found(owner, 'cafés')).toEqual([])
    expect(await found(owner, 'sug')).toEqual(['No sugar.'])
    expect(await found(owner, 'ten')).toEqual(['Her tent is a TENTORIUM.'])
    expect(await found(owner, 'te')).toEqual([])
    expect(await found(owner, 'ugar')).toEqual([])
    expect(await found(owner, 'no!')).toEqual(['No sugar.'])
  })

  it('finds parts of texts that have no spaces', async () => {
    const owner = newOwner()
    await save(owner, '東京に住んでいます')
    await save(owner, '京都と東の山')
    expect(await found(owner, '東京')).toEqual(['東京に住んでいます'])
    expect(await found(owner, '住んで')).toEqual(['東京に住んでいます'])
    expect(await found(owner, '大阪')).toEqual([])
  })

  it('shows what has more of the words first, and no more than asked for', async () => {
    const owner = newOwner()
    for (const text of ['red', 'red and green tent', 'red tent of hers', 'green']) await save(owner, text)
    expect((await found(owner, 'red green tent'))[0]).toBe('red and green tent')
    expect(await found(owner, 'red green tent')).toHaveLength(4)
    expect(await found(owner, 'red green tent', 2)).toHaveLength(2)
    expect(await open().search(owner, [], 10)).toEqual([])
  })

  it('lists by pages, from the newest', async () => {
    const owner = newOwner()
    for (const text of ['a', 'b', 'c', 'd']) await save(owner, text)
    expect(await listed(owner, 2)).toEqual(['d', 'c'])
    expect(await listed(owner, 2, 3)).toEqual(['b', 'a'])
    expect(await listed(owner, 2, 1)).toEqual([])
  })

  it('erases an owner, and all that is about a subject, and nothing else', async () => {
    const ann = { owner: 'subject:ann', subject: 'ann' }
    const chatOfAnn = { owner: 'session:chat of ann', subject: 'ann' }
    const other = { owner: 'session:ann' }
    for (const owner of [ann, chatOfAnn, other]) {
      await save(owner, 'tent one', 'a')
      await save(owner, 'tent two', 'b')
    }
    await open().remove(ann, 1, 'r')
    expect(await open().erase({ subject: 'ann' })).toBe(3)
    expect(await open().erase({ subject: 'ann' })).toBe(0)
    for (const owner of [ann, chatOfAnn]) {
      expect(await listed(owner)).toEqual([])
      expect(await found(owner, 'tent')).toEqual([])
      expect(await open().savedUnder(owner, 'a')).toBeUndefined()
    }
    expect(await found(other, 'tent')).toHaveLength(2)
    expect(await open().erase({ session: 'ann' })).toBe(2)
    expect(await listed(other)).toEqual([])
    await save({ owner: 'own:x' }, 'tent', 'a')
    expect(await open().erase({ owner: 'x' })).toBe(1)
  })

  it('takes no text for a query of its own', async () => {
    const owner = newOwner()
    await save(owner, 'the tent')
    const attacks = [
      ...[
        'tent" OR words:*',
        'owner : x',
        'NEAR(tent the)',
        `'; drop table memory; --`,
        'tent:* & !x',
        '"',
        '*',
      ],
      ...['tent AND', '(tent', '-tent', '\\', 'a <-> b', '^tent', 'NOT'],
    ]
    for (const query of [...attacks, ...hostileTexts.map(({ text }) => text.slice(0, 500))]) {
      for (const text of await found(owner, query)) expect(text).toBe('the tent')
    }
    expect(await found(owner, 'tent" OR words:*')).toEqual(['the tent'])
    expect(await found(owner, 'NOT the')).toEqual(['the tent'])
  })
}

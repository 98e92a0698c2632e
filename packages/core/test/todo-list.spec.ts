import { describe, expect, it } from 'vitest'
import { readTodoItems, formatTodo, todoStates } from '../src/events/content.ts'

const said = (value: unknown) => [
  { type: 'text' as const, text: typeof value === 'string' ? value : JSON.stringify(value) },
]

describe('the list of what an agent has to do', () => {
  const items = todoStates.map((state) => ({ text: `to ${state}`, state }))

  it('is what a result holds as JSON, in any of its states', () => {
    expect(readTodoItems(said({ items }))).toEqual(items)
    expect(readTodoItems(said({ items: [] }))).toEqual([])
    const [one, ...rest] = JSON.stringify({ items }).split(/(?<=,)/)
    expect(readTodoItems([...said(one!), ...said(rest.join(''))])).toEqual(items)
  })

  it.each([
    ...['no JSON', 'null', '7', '[]', {}, { items: 'x' }, { items: {} }],
    ...[{ items: [null] }, { items: ['x'] }, { items: [{ text: 7, state: 'open' }] }],
    ...[{ items: [...items, { text: 'x', state: 'other' }] }, { items: [{ state: 'open' }] }],
    { items: [{ text: 'x' }] },
  ])('is nothing of %j', (value) => {
    expect(readTodoItems(said(value))).toBeUndefined()
  })

  it('reads as lines: how much is done, then each item', () => {
    expect(formatTodo(items)).toEqual(['1 of 3 done', '[ ] to open', '[>] to under_way', '[x] to done'])
    expect(formatTodo([])).toEqual(['0 of 0 done'])
  })
})

import { Observable, Subject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { nextValue, oneValue } from '../src/runtime/output/one-value.ts'

describe('a source of one value', () => {
  it('reports it and completes, to each subscriber', () => {
    const seen: unknown[] = []
    const source = oneValue('x')
    for (const name of ['first', 'second']) {
      source.subscribe({ next: (value) => seen.push([name, value]), complete: () => seen.push([name]) })
    }
    expect(seen).toEqual([['first', 'x'], ['first'], ['second', 'x'], ['second']])
  })
})

describe('the next value of a source', () => {
  it('is its first one, and the source is left then', async () => {
    const source = new Subject<number>()
    const value = nextValue(source)
    expect(source.observed).toBe(true)
    source.next(1)
    expect(source.observed).toBe(false)
    source.next(2)
    expect(await value).toBe(1)
  })

  it('may come while it is subscribed to, and the source is left all the same', async () => {
    let left = false
    const source = new Observable<number>((subscriber) => {
      subscriber.next(1)
      return () => (left = true)
    })
    expect(await nextValue(source)).toBe(1)
    expect(left).toBe(true)
  })

  it('is a rejection where the source fails, or completes without one', async () => {
    const [failing, empty] = [new Subject<number>(), new Subject<number>()]
    const values = [nextValue(failing), nextValue(empty)] as const
    failing.error(new Error('broken'))
    empty.complete()
    await expect(values[0]).rejects.toThrow('broken')
    await expect(values[1]).rejects.toThrow('It completed without a value.')
  })
})

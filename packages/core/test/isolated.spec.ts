import { map, Subject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { IsolatedObservable } from '../src/values/observables.ts'

/** A source whose subscribers are isolated, and what its listener hears. */
function isolated() {
  const source = new Subject<number>()
  const heard: unknown[][] = []
  const listener = {
    onThrow: (error: unknown) => heard.push(['threw', error]),
    onObserved: () => heard.push(['observed']),
    onUnhandledError: (error: unknown) => heard.push(['unhandled', error]),
  }
  const values = new IsolatedObservable<number>(listener, (subscriber) => source.subscribe(subscriber))
  return { source, heard, values, listener }
}

const fault = new Error('out of order')
const throwing = (): never => {
  throw fault
}

describe('a subscriber of an isolated source', () => {
  it('that throws is unsubscribed and reported, and no other hears of it', () => {
    const { source, heard, values } = isolated()
    const seen: number[] = []
    const thrower = values.subscribe(throwing)
    values.subscribe((value) => seen.push(value))
    source.next(1)
    expect([thrower.closed, heard]).toEqual([true, [['threw', fault]]])
    source.next(2)
    expect([seen, heard]).toEqual([[1, 2], [['threw', fault]]])
  })

  it('that throws leaves nothing subscribed to the source, alone or after operators', () => {
    const { source, heard, values } = isolated()
    values.subscribe(throwing)
    values.pipe(map((value) => value + 1)).subscribe(throwing)
    source.next(1)
    expect([source.observed, heard]).toEqual([
      false,
      [
        ['threw', fault],
        ['threw', fault],
      ],
    ])
  })

  it('that throws while it subscribes is unsubscribed, and hears of nothing after it', () => {
    const { listener, heard } = isolated()
    const [later, seen] = [new Subject<number>(), [] as number[]]
    const values = new IsolatedObservable<number>(listener, (subscriber) => {
      subscriber.next(1)
      subscriber.next(2)
      return later.subscribe(subscriber)
    })
    const thrower = values.subscribe((value) => {
      seen.push(value)
      throw fault
    })
    expect([thrower.closed, later.observed]).toEqual([true, false])
    expect([seen, heard]).toEqual([[1], [['threw', fault]]])
  })

  it('hears of a failure if it asks for it; otherwise the listener gets it', () => {
    const { source, heard, values } = isolated()
    const errors: unknown[] = []
    values.subscribe({ error: (error) => errors.push(error) })
    values.subscribe(() => {})
    values.subscribe(null, throwing)
    source.error(fault)
    expect(errors).toEqual([fault])
    expect(heard).toEqual([['observed'], ['unhandled', fault], ['observed'], ['threw', fault]])
  })

  it('hears of the end once, and may throw then', () => {
    const { source, heard, values } = isolated()
    const ends: string[] = []
    values.subscribe(null, null, () => ends.push('over'))
    values.subscribe({ complete: throwing })
    values.subscribe({ next: throwing, complete: () => ends.push('never') })
    source.next(1)
    source.complete()
    expect([ends, heard]).toEqual([
      ['over'],
      [
        ['threw', fault],
        ['threw', fault],
      ],
    ])
  })
})

import { config, map, type Observable, type Subscription } from 'rxjs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { StopRequest } from '../src/tools/tool-call.ts'

type Hear = (reason: string) => void
type Follow = (reason$: Observable<string>, hear: Hear) => Subscription

const followers: readonly (readonly [what: string, follow: Follow])[] = [
  ['a function', (reason$, hear) => reason$.subscribe(hear)],
  ['an observer', (reason$, next) => reason$.subscribe({ next })],
  ['an operator', (reason$, hear) => reason$.pipe(map((reason) => reason)).subscribe(hear)],
]

describe.each(followers)('the request that a running tool stops, followed by %s', (_what, follow) => {
  it('reaches every listener that has not left, those that come later too, once and with the first reason', () => {
    const request = new StopRequest(() => {})
    const heard: string[] = []
    const listen = (name: string) => follow(request.reason$, (reason) => heard.push(`${name}: ${reason}`))
    listen('first').unsubscribe()
    const leaving = listen('second')
    listen('third')
    leaving.unsubscribe()
    request.ask('enough')
    request.ask('really')
    listen('late')
    expect(heard).toEqual(['third: enough', 'late: enough'])
  })

  it('lets a listener go that throws, says so, and reaches the others', () => {
    const threw = vi.fn<(error: unknown) => void>()
    const request = new StopRequest(threw)
    const fault = new Error('not now')
    const heard = vi.fn<Hear>()
    const faulty = (): never => {
      throw fault
    }
    const first = follow(request.reason$, faulty)
    follow(request.reason$, heard)
    request.ask('enough')
    expect(first.closed).toBe(true)
    expect(heard.mock.calls).toEqual([['enough']])
    expect(follow(request.reason$, faulty).closed).toBe(true)
    expect(threw.mock.calls).toEqual([[fault], [fault]])
  })

  it('does not reach a listener that another one has taken away', () => {
    const request = new StopRequest(() => {})
    const heard = vi.fn<Hear>()
    follow(request.reason$, () => second.unsubscribe())
    const second = follow(request.reason$, heard)
    request.ask('enough')
    expect(heard).not.toHaveBeenCalled()
  })

  it('keeps no listener that has left: RxJS gets nothing to pass over', () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const passedOver = vi.fn<() => void>()
    config.onStoppedNotification = passedOver
    onTestFinished(() => void (config.onStoppedNotification = null))
    const request = new StopRequest(() => {})
    follow(request.reason$, () => {}).unsubscribe()
    request.ask('enough')
    vi.runAllTimers()
    expect(passedOver).not.toHaveBeenCalled()
  })
})

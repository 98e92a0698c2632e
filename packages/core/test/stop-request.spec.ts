import { config } from 'rxjs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { StopRequest } from '../src/runtime/effects/stop-request.ts'

describe('the request that a running tool stops', () => {
  it('reaches every listener that has not left, those that come later too, once and with the first reason', () => {
    const request = new StopRequest(() => {})
    const heard: string[] = []
    const listen = (name: string) => request.reason$.subscribe((reason) => heard.push(`${name}: ${reason}`))
    listen('first').unsubscribe()
    const leaving = listen('second')
    listen('third')
    leaving.unsubscribe()
    request.ask('enough')
    request.ask('really')
    listen('late')
    expect(heard).toEqual(['third: enough', 'late: enough'])
  })

  it('keeps no listener that has left: RxJS gets nothing to pass over', () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const passedOver = vi.fn<() => void>()
    config.onStoppedNotification = passedOver
    onTestFinished(() => void (config.onStoppedNotification = null))
    const request = new StopRequest(() => {})
    request.reason$.subscribe().unsubscribe()
    request.ask('enough')
    vi.runAllTimers()
    expect(passedOver).not.toHaveBeenCalled()
  })
})

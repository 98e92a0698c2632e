import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { sampleRunId } from '@tallystick/testkit'
import { ChangeHints } from '@tallystick/core/store-kit'

const [run, other] = [sampleRunId(1), sampleRunId(2)]

/** How often each follower was hinted at since it was asked last. */
function following() {
  const hints = new ChangeHints()
  const counts = { run: 0, inbox: 0, other: 0, any: 0, anyInbox: 0 }
  let completed = 0
  const follow = (name: keyof typeof counts, ...followed: Parameters<ChangeHints['of']>) =>
    hints.of(...followed).subscribe({ next: () => void counts[name]++, complete: () => void completed++ })
  const subscriptions = [
    follow('run', run),
    follow('inbox', run, 'inbox'),
    follow('other', other),
    follow('any', undefined),
    follow('anyInbox', undefined, 'inbox'),
  ]
  const received = (): object => {
    const now = { ...counts }
    Object.assign(counts, { run: 0, inbox: 0, other: 0, any: 0, anyInbox: 0 })
    return now
  }
  return { hints, received, subscriptions, completed: () => completed }
}

describe('hints of a ledger', () => {
  it('reach those who follow the run, and those who follow any', () => {
    const { hints, received } = following()
    hints.notify(run, false)
    expect(received()).toEqual({ run: 1, inbox: 0, other: 0, any: 1, anyInbox: 0 })
    hints.notify(run, true)
    expect(received()).toEqual({ run: 1, inbox: 1, other: 0, any: 1, anyInbox: 1 })
    hints.notify(sampleRunId(3), true)
    expect(received()).toEqual({ run: 0, inbox: 0, other: 0, any: 1, anyInbox: 1 })
  })

  it('reach all where the run is not known, and only followers of any where no followed run has changed', () => {
    const { hints, received } = following()
    hints.notifyAll()
    expect(received()).toEqual({ run: 1, inbox: 1, other: 1, any: 1, anyInbox: 1 })
    hints.notifyFollowersOfAny()
    expect(received()).toEqual({ run: 0, inbox: 0, other: 0, any: 1, anyInbox: 1 })
  })

  it('end with the ledger, also for those who come later, and with their subscription', () => {
    const { hints, received, subscriptions, completed } = following()
    subscriptions[0]?.unsubscribe()
    const again = hints.of(run).subscribe()
    hints.notify(run, false)
    expect(received()).toEqual({ run: 0, inbox: 0, other: 0, any: 1, anyInbox: 0 })
    again.unsubscribe()
    hints.close()
    expect(completed()).toBe(4)
    let late = false
    hints.of(run).subscribe({ complete: () => void (late = true) })
    expect(late).toBe(true)
  })

  it('keep nothing of a run that has no follower any more, and all of one that has', () => {
    const hints = new ChangeHints()
    let received = 0
    const [first, second] = [run, run].map((runId) => hints.of(runId).subscribe(() => void received++))
    hints.of(other).subscribe().unsubscribe()
    first?.unsubscribe()
    const forget = vi.spyOn(Map.prototype, 'delete')
    onTestFinished(() => forget.mockRestore())
    hints.notifyAll()
    expect([forget.mock.calls.length, received]).toEqual([0, 1])
    second?.unsubscribe()
    hints.notifyAll()
    expect([forget.mock.calls.length, received]).toEqual([1, 1])
  })

  it('may have followers come and go while they are given', () => {
    const hints = new ChangeHints()
    let received = 0
    const first = hints.of(run).subscribe(() => {
      received++
      first.unsubscribe()
      hints.of(other).subscribe(() => void received++)
    })
    hints.notifyAll()
    expect(received).toBe(1)
    hints.notifyAll()
    expect(received).toBe(2)
  })
})

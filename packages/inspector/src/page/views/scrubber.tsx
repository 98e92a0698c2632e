import { signal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { goTo, isEnded, isLive, lastSeq, lines, seq } from '../state/open-run.ts'
import { go } from '../state/route.ts'

/** How fast events are played: by their own times, or ten times as fast. */
const speeds = [1, 10] as const
const playing = signal<(typeof speeds)[number] | undefined>(undefined)
/** What took long is played as if it took this long. */
const longestPauseMs = 2_000

/** The slider over the events of a run, and what moves it. */
export function Scrubber(): JSX.Element {
  useEffect(() => {
    addEventListener('keydown', handleKey)
    return () => removeEventListener('keydown', handleKey)
  }, [])
  const speed = playing.value
  const now = seq.value
  useEffect(() => {
    if (speed === undefined) return undefined
    const here = lines[now - 1]
    const next = lines[now]
    if (here === undefined || next === undefined) {
      if (isEnded.value) playing.value = undefined
      return undefined
    }
    const pause = Math.min(longestPauseMs, Math.max(0, next.at - here.at)) / speed
    const timer = setTimeout(() => goTo(now + 1), pause)
    return () => clearTimeout(timer)
  }, [speed, now, lastSeq.value])
  const play = (at: (typeof speeds)[number]): void => {
    playing.value = playing.value === at ? undefined : at
    if (playing.value !== undefined && seq.value >= lastSeq.value) goTo(1)
  }
  return (
    <div class="scrubber">
      {speeds.map((each) => (
        <button
          key={each}
          type="button"
          class="quiet"
          aria-pressed={speed === each}
          onClick={() => play(each)}
        >
          {speed === each ? 'Pause' : each === 1 ? 'Play' : `×${each}`}
        </button>
      ))}
      <input
        type="range"
        aria-label="Event"
        aria-valuetext={`event ${now} of ${lastSeq.value}: ${lines[now - 1]?.type ?? ''}`}
        min={1}
        max={Math.max(1, lastSeq.value)}
        value={now}
        onInput={(event) => goTo(Number(event.currentTarget.value))}
      />
      <output>
        {now.toLocaleString()} of {lastSeq.value.toLocaleString()}
      </output>
      <button
        type="button"
        class="quiet"
        aria-pressed={isLive.value}
        title="Follow the end of the run (End)"
        onClick={() => go({ at: undefined })}
      >
        {isEnded.value ? 'End' : 'Live'}
      </button>
    </div>
  )
}

/** Keys move through a run wherever the focus is, but where one types. */
function handleKey(event: KeyboardEvent): void {
  const target = event.target as HTMLElement
  const types = target.closest(
    'input:not([type=range]), textarea, select, [contenteditable], dialog, [role=tablist]',
  )
  if (types || event.altKey || event.ctrlKey || event.metaKey) return
  const move = moves[event.key]
  if (move === undefined) return
  event.preventDefault()
  move()
}

const moves: Readonly<Record<string, () => void>> = {
  ArrowRight: () => goTo(seq.value + 1),
  ArrowLeft: () => goTo(seq.value - 1),
  ']': () => goToTurn(1),
  '[': () => goToTurn(-1),
  Home: () => goTo(1),
  End: () => go({ at: undefined }),
}

/** The first event of the next turn, or of the one before. */
function goToTurn(step: 1 | -1): void {
  let place = seq.value - 1
  const leave = (by: 1 | -1): void => {
    const turn = lines[place]?.turn
    while (lines[place] !== undefined && lines[place]!.turn === turn) place += by
  }
  leave(step)
  if (lines[place] === undefined) return
  // Backwards, the last event of the turn is met first.
  if (step === -1) {
    leave(-1)
    place++
  }
  goTo(lines[place]!.seq)
}

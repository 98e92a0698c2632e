import type { JSX } from 'preact'

const entries = [
  ['model', 'model'],
  ['tool', 'tool'],
  ['failed', 'failed'],
  ['people', 'for people'],
  ['outside', 'outside'],
  ['time', 'for time'],
  ['nobody', 'no process'],
] as const

/** What the colours and patterns of the timeline mean. */
export function Key(): JSX.Element {
  return (
    <ul class="key" aria-label="Key">
      {entries.map(([name, words]) => (
        <li key={name}>
          <span class={`swatch ${name}`} aria-hidden="true" />
          {words}
        </li>
      ))}
    </ul>
  )
}

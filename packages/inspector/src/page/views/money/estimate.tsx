import type { JSX } from 'preact'

/** Marks a number as an estimate. */
export function Estimate({ why }: { readonly why: string }): JSX.Element {
  return (
    <span class="estimate" title={why}>
      <span aria-hidden="true">≈</span>
      <span class="hidden-visually">about </span>
    </span>
  )
}

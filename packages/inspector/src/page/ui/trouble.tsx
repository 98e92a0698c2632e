import type { JSX } from 'preact'

/** Why something did not work, said at once to screen readers, too. Nothing without words. */
export function Trouble({ words }: { readonly words: string | undefined }): JSX.Element | null {
  return words === undefined ? null : (
    <p class="notice bad" role="alert">
      {words}
    </p>
  )
}

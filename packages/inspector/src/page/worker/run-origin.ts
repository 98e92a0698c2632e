/** Where the events of a run come from: a server, or lines of an export. */
export type RunOrigin =
  | { readonly kind: 'server'; readonly url: string }
  | { readonly kind: 'lines'; readonly lines: readonly string[]; readonly record?: readonly string[] }

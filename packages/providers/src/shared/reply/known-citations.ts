/** What is said of a citation or a source: fields that are not known are left out, and so are empty ones. */
export function known<T extends object>(fields: { readonly [K in keyof T]-?: T[K] | undefined }): T {
  const filled = Object.entries(fields).filter(([, value]) => value !== undefined && value !== '')
  return Object.fromEntries(filled) as T
}

/**
 * Whether an official client refuses to be made where it is: in a page that its user, and any script in it, can read keys
 * from. It says so in words alone, which speak of credentials as well.
 */
export function isBrowserRefusal(error: unknown): boolean {
  return error instanceof Error && error.message.includes('dangerouslyAllowBrowser')
}

/** What to do about it. */
export const browserAdvice: string =
  'The official client does not run in a browser, where whoever uses the page could read the key. Let a server of yours make the calls, or pass a client that was made with dangerouslyAllowBrowser.'

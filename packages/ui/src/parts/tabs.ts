/** Arrow keys go from tab to tab of a list of tabs, which is one stop for the Tab key. */
export function onTabKey(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step === undefined) return;
  const tabs = [...event.currentTarget.querySelectorAll<HTMLElement>('[role="tab"]')];
  const next = tabs.indexOf(document.activeElement as HTMLElement) + step;
  const tab = tabs[(next + tabs.length) % tabs.length];
  event.preventDefault();
  tab?.focus();
  tab?.click();
}

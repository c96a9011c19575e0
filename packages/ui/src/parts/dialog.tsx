import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "./icon.js";

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** A window over the page, which keeps the focus until it closes and gives it back. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const from = document.activeElement as HTMLElement | null;
    const first = box.current?.querySelector<HTMLElement>("[autofocus],input,textarea");
    (first ?? box.current)?.focus();
    return () => from?.focus();
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    if (event.key === "Escape") onClose();
    if (event.key !== "Tab") return;
    const all = [
      ...(box.current?.querySelectorAll<HTMLElement>("a,button,input,select,textarea") ?? []),
    ];
    const edge = event.shiftKey ? all[0] : all.at(-1);
    if (document.activeElement !== edge) return;
    event.preventDefault();
    (event.shiftKey ? all.at(-1) : all[0])?.focus();
  };
  return (
    <div
      class="shade"
      role="presentation"
      onPointerDown={(event) => event.target === event.currentTarget && onClose()}
    >
      <div
        class="dialog"
        role="dialog"
        aria-modal="true"
        aria-label={title}
        tabIndex={-1}
        ref={box}
        onKeyDown={onKeyDown}
      >
        <div class="head-row">
          <h2>{title}</h2>
          <button class="tool" type="button" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        </div>
        {children}
      </div>
    </div>
  );
}

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface MenuProps {
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly class?: string;
  readonly label: string;
}

/** A panel beside its button. It closes by Escape, by a click elsewhere, and when the focus leaves it. */
export function Menu({ onClose, children, label, class: className = "" }: MenuProps) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const from = document.activeElement as HTMLElement | null;
    const anchor = box.current?.parentElement;
    box.current?.querySelector<HTMLElement>("input,select,textarea,button")?.focus();
    const onDown = (event: Event) => {
      if (anchor?.contains(event.target as Node) !== true) onClose();
    };
    document.addEventListener("pointerdown", onDown);
    return () => {
      document.removeEventListener("pointerdown", onDown);
      if (document.activeElement === document.body) from?.focus();
    };
  }, []);
  return (
    <div
      class={`menu ${className}`}
      role="group"
      aria-label={label}
      ref={box}
      onFocusOut={({ relatedTarget }) => {
        const anchor = box.current?.parentElement;
        if (relatedTarget !== null && anchor?.contains(relatedTarget as Node) === false) onClose();
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        onClose();
      }}
    >
      {children}
    </div>
  );
}

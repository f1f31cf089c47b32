# options: {'force_break_every': 9}
def f(a, b, c, t, u):
    global G, N, D, T
    w = z = n = 0; m = 2; x = 'ab'; l = [3, 1]; d = {'a': 1, 'b': 2}; v = t; o = P(3); q = P(1, o)
    v = t.clone()
    try:
        w = lambda: l
        for q in [1, 2]:
            turn1 = 0
            if len(LOG) > 60:
                break
            l = G
        u.pop('a', list(map(str, [])))
    finally:
        G.append((o + o))
    for n in D:
        turn2 = LOG.append(1)
        if len(LOG) > 60:
            break
        D['k'] = [m]
        def fn3(p=max(int(t[0]), N), *args, key=1):
            global G, N, D, T
            nonlocal w, z, n, m, x, l, d, v, o, q
            if n:
                w = (getattr(o, 'y', 5),)
                t.add_(1)
            else:
                v = T
            yield d
            got = yield p
            yield (got, 'text'.upper())
            return bool(o)
        z = fn3()
        m = vars(P(m)).get('k', len(u))
    w = ([t.dim(), b],)
    m, N = 1, 2
    v = ((t + 1) < 2)
    return d, c, z

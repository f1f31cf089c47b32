# options: {'force_break_every': 4}
def f(a, b, c, t, u):
    global G, N, D, T
    w = z = n = 0; m = 2; x = 'ab'; l = [3, 1]; d = {'a': 1, 'b': 2}; v = t; o = P(3); q = P(1, o)
    d = ({} | {'a': float(t.sum())})
    del w
    if not int(1):
        if o:
            raise Failed(list(range(3)).copy())
        else:
            def fn1(p=t.dim(), *args, key=1):
                global G, N, D, T
                nonlocal w, z, n, m, x, l, d, v, o, q
                def fn2(p=float(t.sum()), *args, key=1):
                    global G, N, D, T
                    n3 = 0
                    while n3 < 3 and len(LOG) < 60:
                        n3 += 1
                        l.extend([t.shape[0]])
                        del l[0]
                        raise Failed(v)
                    for u in enumerate(G):
                        turn4 = 0
                        if len(LOG) > 60:
                            break
                        z = [i for i in [] if i is not w]
                        G.append(G)
                        G.append(G)
                        if round(-1):
                            continue
                    v = (t * t.shape[0])
                    return torch.rand(2)
                G.append(fn2())
                if (t[1:] if True else q):
                    G = list({bool(t.shape[0]), 2.5})
                    l = [t.view(-1), t[1:]]
                    N = sum(list(D.items()))
                N = a
                return G
            z = fn1
    else:
        d.pop('a', q.m(a, 1, key=2))
        n, m = m, n
        D.setdefault('a', []).append([*[], 2.5])
    c = ([][1:] * 2)
    m = a
    t = torch.as_tensor(len(list(range(3))))
    return [w, z, n, m, x, l, d, v, o, q, t, u, c]
